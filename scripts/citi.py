"""Figures of CITI TR 01-3 (Antonelli, Coffman, Rees 2001): seconds to read a file that was flushed from the client's cache, and
user and system time of the client, on Solaris. Table 3 has the bypass alone, Table 4 (mean of its three repetitions) bypass and split
path together; cached is ordinary AFS on the same machines. The split path alone was not measured, nor a processor time of the server."""

from statistics import mean

COLUMNS = ["Table 3: cached", "Table 3: bypass alone", "Table 4: cached", "Table 4: both"]
QUANTITIES = ["elapsed, s", "user, s", "system, s"]

# By length in MB: cached and bypass, for each quantity.
TABLE_3 = {1: [(1.24, 1.15), (0.13, 0.16), (0.08, 0.02)],
           10: [(13.5, 11.45), (1.42, 1.41), (0.53, 0.17)],
           100: [(149.19, 117.15), (14.43, 14.16), (4.9, 1.71)]}
# The same with both, three times.
TABLE_4 = {1: [[(2.11, 0.42), (0.13, 0.16), (0.07, 0.02)], [(1.51, 0.24), (0.15, 0.15), (0.07, 0.02)], [(0.9, 0.26), (0.15, 0.14), (0.07, 0.03)]],
           10: [[(15.38, 3.37), (1.47, 1.43), (0.55, 0.14)], [(15.3, 2.56), (1.43, 1.45), (0.55, 0.11)], [(14.83, 2.61), (1.43, 1.39), (0.55, 0.16)]],
           100: [[(155.27, 26.83), (14.55, 14.32), (5.42, 1.72)], [(157.94, 29.21), (14.28, 14.3), (5.54, 1.73)], [(152.27, 27.9), (14.72, 14.23), (5.44, 1.8)]]}


def figures(megabytes, quantity):
    """The values of COLUMNS; None for what the report does not have."""
    if quantity not in QUANTITIES or megabytes not in TABLE_3:
        return [None] * len(COLUMNS)
    row = QUANTITIES.index(quantity)
    return [*TABLE_3[megabytes][row], *(mean(column) for column in zip(*(run[row] for run in TABLE_4[megabytes])))]


def ratio(megabytes, quantity, over, under):
    """Of two columns."""
    values = dict(zip(COLUMNS, figures(megabytes, quantity)))
    return values[over] / values[under]
