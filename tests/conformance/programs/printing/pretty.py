"""pprint and json."""

import json
import pprint


def main(rank, world_size):
    pprint.pprint({"b": [1, 2], "a": {"x": None}})
    print(json.dumps({"rank": rank}, indent=2))
