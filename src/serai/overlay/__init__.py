"""A static, connected network with a key-based overlay: TinyMQ and PUB-2-SUB+."""
