"""What batteries gain and lose by themselves, and who wakes: "Batteries" and "Waking" of docs/field/rules.md."""

from serai.field.world import World
from tests.field.naive.parts import Community, Records, Sensor, Session


class Power:
    """Listening, harvest and waking; what else a network is, others say."""

    world: World
    now: int
    sensors: list[Sensor]
    communities: list[Community]
    records: Records
    kin: list[frozenset[int]]  # of each sensor: those with which it was one community at the start
    new: set[int]  # sensors that are new to who is beside them, in the next slot

    def left_pj(self, sensor: Sensor) -> int:
        raise NotImplementedError

    def hear_each_other(self, sensor: Sensor, node: Sensor) -> bool:
        raise NotImplementedError

    def form_anew(self, kin: frozenset[int]) -> None:
        """What the protocol does when these kin form communities anew."""

    def listen(self) -> None:
        """All harvest, then every living sensor pays for having listened; what a battery cannot hold is lost."""
        for sensor in self.sensors:
            if self.world.harvest is not None:
                hour = (self.world.harvest.since_midnight_s + self.now) // 3600 % 24
                sensor.harvested_pj += round(float(self.world.harvest.watts[sensor.number, hour]) * 1e12)
            if sensor.died < 0:
                sensor.idled_pj += min(sensor.idle_pj, self.left_pj(sensor))
                if self.left_pj(sensor) == 0:
                    sensor.exhausted = True
            sensor.wasted_pj += max(self.left_pj(sensor) - sensor.battery_pj, 0)

    def wake(self) -> None:
        """Whoever died before this slot and has enough lives from the next one on; its kin form anew."""
        self.new = set()
        if self.world.harvest is None:
            return
        share = self.world.harvest.wake
        dead = [s for s in self.sensors if 0 <= s.died < self.now and not s.broken]
        able = [sensor for sensor in dead if self.left_pj(sensor) >= max(share * sensor.battery_pj, 1)]
        for sensor in able:
            self.records.naps.append((sensor.number, sensor.died, self.now))
        groups = dict.fromkeys(self.kin[sensor.number] for sensor in able)
        for kin in groups:
            self.end_sessions(kin)
        for sensor in able:
            sensor.died, sensor.exhausted = -1, False
        for kin in groups:
            living = [sensor for sensor in self.sensors if sensor.number in kin and sensor.died < 0]
            for sensor in living:
                sensor.neighbors = [o for o in living if o is not sensor and self.hear_each_other(sensor, o)]
            self.form_anew(kin)
            self.new |= {sensor.number for sensor in living}

    def end_sessions(self, kin: frozenset[int]) -> None:
        """All sessions with these kin end."""
        for community in self.communities:
            if community.sensors[0].number in kin:
                for session in list(community.sessions):
                    self.end_session(community, session)

    def end_session(self, community: Community, session: Session) -> None:
        """Protocols without sessions end none."""
