"""Fairway's own contract: gangs, topology, reasons and summaries over gRPC; generated from proto/."""
