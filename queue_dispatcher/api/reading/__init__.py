"""Reads objects as the API server sends them into what the dispatcher decides with, never refusing one."""
