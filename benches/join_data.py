#!/usr/bin/env python3
"""Makes two CSV files to be joined, the same for the same arguments: visits.csv and sites.csv.

    benches/join_data.py DIRECTORY BYTES [SEED]

Each has about BYTES bytes and a header. The keys are skewed: visits go to sites about as Zipf has it,
one visit of a hundred to the site `hot`, which has 100 rows among the sites; half the other visits go
to a site that is not there.
"""

import os
import random
import sys

ROW_BYTES = 200
HOT_VISITS = 0.01
HOT_ROWS = 100


def write(path, header, rows):
    with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
        file.write(header)
        for row in rows:
            file.write(row)


def visits(count, sites, random):
    padding = "abcdefghijklmnopqrstuvwxyz" * 6
    for number in range(count):
        chance = random.random()
        if chance < HOT_VISITS:
            site = "hot"
        else:
            # Dense at the small numbers; the upper half of them are no sites.
            site = f"s{int(2 * sites * random.random() ** 3):x}" if chance < 0.5 else f"x{number:x}"
        agent = padding[number % 7 : number % 7 + 130 + number % 20]
        yield f"{number},{site},/page/{number % 1013}.html,{number % 4999},{agent}\n"


def sites(count, random):
    padding = "zyxwvutsrqponmlkjihgfedcba" * 7
    order = list(range(count))
    random.shuffle(order)
    for number in order:
        about = padding[number % 11 : number % 11 + 150 + number % 20]
        yield f"s{number:x},site {number},{number % 97},{about}\n"
        if number < HOT_ROWS:
            yield f"hot,hot row {number},{number % 97},{about}\n"


def main():
    directory, size = sys.argv[1], int(sys.argv[2])
    seeded = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 42)
    os.makedirs(directory, exist_ok=True)
    count = size // ROW_BYTES
    write(f"{directory}/visits.csv", "id,site,path,bytes,agent\n", visits(count, count, seeded))
    write(f"{directory}/sites.csv", "site,name,rank,about\n", sites(count, seeded))


main()
