"""Who uses what: the devices that pods hold, what was measured on them, and what of that is wasted."""
