"""The overlay's engine: static, connected networks of nodes that know their neighbours and no positions."""
