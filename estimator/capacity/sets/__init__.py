"""How many whole sets of several components fit: bounds, greedy placements, integer programs."""
