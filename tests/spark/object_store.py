"""A stand-in for an object store: moto's S3, in this process, which may go away and come back with all it had."""

from __future__ import annotations

import logging
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from tests.spark.cluster import free_port, listens, until

BUCKET = "field-data"


class Stand:
    """A server, and what programs have to know of it."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # or each request is a line
        self.port = free_port()
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self.start()

    def start(self) -> None:
        self.server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self.server.start()
        until(lambda: listens(self.port), "the store listens")

    def stop(self) -> None:
        self.server.stop()

    def bucket(self) -> Any:
        return boto3.resource("s3", endpoint_url=self.environment["AWS_ENDPOINT_URL"]).Bucket(BUCKET)
