"""Reports and verdicts as tables in a terminal; plain ASCII, so that they survive any terminal and pipe."""
