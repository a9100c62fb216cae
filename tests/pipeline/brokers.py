"""A broker that remembers, and can be stopped and started again."""

import subprocess
from getpass import getuser
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from tests.pipeline.field import CONFIG, make_field
from tests.programs import program
from tests.spark.cluster import free_port, listens, until


class Mosquitto:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        folder.mkdir()
        settings = f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\nuser {getuser()}\n"
        (folder / "mosquitto.conf").write_text(f"{settings}persistence_location {folder}/\nmax_queued_messages 0\n")
        self.command = [program("mosquitto"), "-c", str(folder / "mosquitto.conf")]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        until(lambda: listens(self.port), "the broker listens")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def publish(self, payloads: list[bytes]) -> None:
        client = Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for payload in payloads:
            client.publish("field/a/events", payload, qos=1).wait_for_publish(20)
        client.disconnect()
        client.loop_stop()


def field_with(folder: Path, broker: Mosquitto, config: str = CONFIG) -> Path:
    source = (
        f'{{kind = "mqtt", broker = "mqtt://127.0.0.1:{broker.port}", topics = ["field/+/events"], flush = "200 ms"}}'
    )
    return make_field(folder, config.replace("source = [", f"source = [{source}, "))
