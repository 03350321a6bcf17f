"""A bounded storm of random requests, objects and faults against a real server process."""
