"""How many of the planted mistakes a test run plants."""
import os


def sampled(mistakes, number):
    """So many, or as many as RUSH_LAB_MISTAKES says, a number or all, spread over the list."""
    wanted = os.environ.get("RUSH_LAB_MISTAKES", str(number))
    number = len(mistakes) if wanted == "all" else min(int(wanted), len(mistakes))
    return [mistakes[i * len(mistakes) // number] for i in range(number)]
