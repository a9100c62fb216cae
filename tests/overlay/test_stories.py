"""Brokers that know only their neighbours do what the rules say of the whole network, message by message."""

from hypothesis import given, settings

from tests.overlay.stories import FromAbove, FromBrokers, Story, stories


@settings(max_examples=4 * settings().max_examples)  # small networks are quick, and often dull
@given(stories())
def test_brokers_do_what_the_rules_say(story: Story) -> None:
    above, brokers = FromAbove(story), FromBrokers(story)
    for step in story.steps:
        expected, found = above.take(step), brokers.take(step)
        assert found.places == expected.places, step
        assert found.hops == expected.hops, step
        assert found.sent == expected.sent, step
        assert found.delivered == expected.delivered, step
        assert found.lost == expected.lost, step
        assert found.stored == expected.stored, step
