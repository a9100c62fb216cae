"""The kernels over arrays do what the rules say of the network, message by message, as the brokers do."""

from dataclasses import replace

from hypothesis import given, settings

from tests.overlay.kernels import FromKernels, per_node
from tests.overlay.stories import Fail, FromAbove, Record, Repair, Step, Story, Tell, stories


def mended_at_once(story: Story) -> Story:
    """The same story, with a repair after every failure."""
    steps: list[Step] = []
    for step in story.steps:
        steps += [step, Repair()] if isinstance(step, Fail) else [step]
    return replace(story, steps=tuple(steps))


def queries_sent(record: Record) -> dict[tuple[str, int, int], int]:
    return {link: count for link, count in record.sent.items() if link[0] in ("subscribe", "unsubscribe")}


@settings(max_examples=4 * settings().max_examples)  # small networks are quick, and often dull
@given(stories(any_zones=True))
def test_kernels_do_what_the_rules_say(story: Story) -> None:
    story = mended_at_once(story)
    above, kernels = FromAbove(story), FromKernels(story)
    handed_on: dict[tuple[str, int, int], int] = {}
    for step in story.steps:
        expected, found = above.take(step), kernels.take(step)
        if isinstance(step, Fail):  # what follows from it is seen after the repair
            handed_on = queries_sent(found)
            continue
        if isinstance(step, Repair):
            assert handed_on == queries_sent(expected), step
            handed_on = {}
        else:
            assert queries_sent(found) == queries_sent(expected), step
        assert found.places == expected.places, step
        assert found.hops == expected.hops, step
        if isinstance(step, Tell):
            assert kernels.sent == per_node(expected.sent, 1), step
            assert kernels.received == per_node(expected.sent, 2), step
            assert found.delivered == expected.delivered, step
        if kernels.is_whole:
            assert found.stored == expected.stored, step
