"""Each claim of docs/threat-model.md, tested."""
