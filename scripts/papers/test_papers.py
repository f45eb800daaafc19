"""Tests of what is computed and written: against the papers' own numbers, and with costs and results made here.

  python3 -B -m unittest discover -s scripts/papers -t scripts
"""

import json, tempfile, unittest
from pathlib import Path

from papers import closed, costs, data, model, pages, plots, replay, results, traces
from papers.closed import Demands
from papers.costs import CAPABILITIES_BY_REQUESTS, PATH_READ, PATH_STORE, RENEWALS_BY_REQUESTS, Costs, NotMeasured
from papers.sheets import Sheet, rounded, shown, significant

PAPERS = data.papers()
INPUTS = model.Inputs(PAPERS)
SYSTEMS = model.SYSTEMS


def numbers(row):
    return [cell for cell in row if isinstance(cell, float)]


class Data(unittest.TestCase):
    def test_all_papers_have_their_tables_and_figures_with_how_each_is_repeated(self):
        self.assertEqual([(paper.id, len(paper.entries), sum(len(entry.slips) for entry in paper.entries)) for paper in PAPERS],
                         [("howard88", 21, 0), ("citi01-3", 9, 0), ("gibson97", 25, 6)])
        entries = [entry for paper in PAPERS for entry in paper.entries]
        self.assertEqual(len({entry.id for entry in entries}), len(entries))
        for entry in entries:
            self.assertIn(entry.how, ["computed", "measured", "modelled", "description", "lacks"], entry.id)
            self.assertEqual(entry.how == "lacks", len(entry.lacks or "") > 10, entry.id)
            self.assertIn(entry.needs, [None, "mount", "other", "costs"], entry.id)
            self.assertTrue(entry.measures, entry.id)
            Sheet.read(entry.sheet.written())
        table14 = PAPERS[0].sheet("table14")
        self.assertEqual(len(table14.points("file_bytes", "andrew_cold")), 5)
        self.assertEqual(len(table14.points("file_bytes", "nfs")), 1, "what is not at hand is no number")
        self.assertGreater(sum(len(paper.claims) for paper in PAPERS), 40)

    def test_numbers_have_the_digits_that_people_read(self):
        self.assertEqual([shown(one) for one in [6_676_479.0, 0.474, 33.3, 1234.56, 0.000_125, -0.5, 0.0]],
                         ["6676479", "0.474", "33.3", "1234.6", "0.000125", "-0.5", "0"])
        self.assertEqual([significant(one) for one in [227.25, 0.333_333, 50.9, 7.0, 0.0, 6_676_479.0, 0.001_234]],
                         ["227", "0.333", "50.9", "7", "0", "6676479", "0.00123"])
        self.assertEqual([rounded(2.5, 0), rounded(-2.5, 0), rounded(0.25, 1), rounded(float("nan"), 1)], [3.0, -3.0, 0.3, None])


class Model(unittest.TestCase):
    def test_a_line_goes_through_its_points_and_beyond(self):
        points = [(1.0, 10.0), (2.0, 20.0), (4.0, 60.0)]
        self.assertEqual([model.line(points, x) for x in [0.0, 1.0, 1.5, 2.0, 3.0, 5.0]], [0.0, 10.0, 15.0, 20.0, 40.0, 80.0])
        self.assertEqual([model.line(points[:1], 1.0), model.line([], 1.0)], [None, None])

    def test_every_cell_of_table_7_is_as_printed_but_for_two_slips(self):
        seen = [(one.operation, SYSTEMS[system], one.agreement(system)) for trace, _ in model.TRACES for one in model.work(INPUTS, trace)
                for system in range(3) if one.agreement(system) != "digits"]
        self.assertEqual(seen, [("BlockRead", "SAD", "near"), ("BlockWrite", "SAD", "near"), ("Open", "NASD", "no"), ("FetchData", "SAD", "near"),
                                ("StoreData", "SAD", "no")])

    def test_sums_and_shares_of_table_7_follow(self):
        """The printed columns and shares follow from the printed cells."""
        for trace, _ in model.TRACES:
            table = f"table7-{trace}"
            names, sad = INPUTS.operations(table), INPUTS.number(table, "total", "SAD")
            for system in SYSTEMS:
                cell = lambda row: INPUTS.number(table, row, system)
                self.assertLessEqual(abs(sum(map(cell, names)) - cell("total")), 0.05 * len(names), (table, system))
                for row in [*names, "total"]:
                    share = INPUTS.number(table, row, f"{system}_pct")
                    self.assertLess(abs(100.0 * cell(row) / sad - share), 0.05 + 5.0 / sad, (table, system, row))

    def test_the_totals_are_those_of_the_papers_own_rules(self):
        nfs, afs = model.table7(INPUTS, "nfs"), model.table7(INPUTS, "afs")
        # Without the slip in Open: 7.1 Gcycles, 3.2 % of SAD.
        self.assertEqual((nfs.number("total", "NASD"), nfs.number("total", "NASD_pct")), (7.1, 3.2))
        self.assertEqual((afs.number("total", "NetSCSI"), afs.number("total", "NASD")), (189.4, 90.9))

    def test_shares_of_the_whole_nfs_trace_are_not_the_printed_ones(self):
        sheet = model.table3a(INPUTS)
        for at, slack, wanted in [(3, 0.35, [24.7, 0.3, 31.7, 13.8, 27.6, 1.5, 0.4]), (1, 0.11, [42.5, 0.3, 20.4, 4.2, 31.4, 1.0, 0.2])]:
            for row, want in zip(sheet.rows, wanted, strict=True):
                self.assertLess(abs(row[at] - want), slack, row)

    def test_shares_of_the_whole_afs_trace_are_the_printed_ones(self):
        sheet = model.table4a(INPUTS)
        self.assertEqual([shown(sheet.number(name, "pct_cycles")) for name in ["FetchStatus", "StoreStatus", "Others"]], ["39.3", "2.2", "5.4"])
        for row in sheet.rows:
            self.assertLess(abs(row[1] - INPUTS.number("table4a", row[0], "percent")), 0.11, row)
            self.assertTrue(row[3] is None or abs(row[3] - INPUTS.number("table4a", row[0], "pct_cycles")) < 0.06, row)

    def test_shares_of_busy_minutes_are_the_printed_ones(self):
        for row in model.table5(INPUTS).rows:
            for at, column in [(2, "nfs_pct_of_trace"), (4, "afs_pct_of_trace")]:
                # Gigabytes have two digits; the others are exact.
                self.assertLess(abs(row[at] - INPUTS.number("table5", row[0], column)), 3.0 if row[0].endswith("GB") else 0.6, row)

    def test_figure_6_and_the_derived_tables_follow_from_table_7(self):
        for name, got in [("fig6", model.figure6(INPUTS)), ("derived-costs", model.derived_costs(INPUTS)), ("derived-nfs-nasd", model.derived_opens(INPUTS))]:
            want, compared = INPUTS.sheet(name), 0
            for mine, printed in zip(got.rows, want.rows, strict=True):
                for column in set(got.columns) & set(want.columns):
                    pair = numbers([got.cell(mine, column), want.cell(printed, column)])
                    if len(pair) == 2:
                        self.assertLess(abs(pair[0] - pair[1]), 0.06, (name, column))
                        compared += 1
            self.assertGreaterEqual(compared, len(got.rows), name)


class Traces(unittest.TestCase):
    def test_means_are_as_requested_and_seeds_decide(self):
        unit = traces.numbers(7)
        self.assertLess(abs(sum(unit() for _ in range(100_000)) / 1e5 - 0.5), 0.01)
        self.assertLess(abs(sum(traces.exponential(unit, 30.0) for _ in range(100_000)) / 1e5 - 30.0), 0.5)
        self.assertEqual(traces.numbers(1)(), traces.numbers(1)())
        self.assertNotEqual(traces.numbers(1)(), traces.numbers(2)())

    def test_the_published_distributions_are_reproduced(self):
        for trace, table, busy in [("nfs", "table3a", 2.0), ("afs", "table4a", 5.0)]:
            seen, of2 = traces.Statistics(INPUTS, trace, 1, 4), lambda what: INPUTS.number("table2", what, trace)
            near = lambda what, got, want, slack: self.assertLessEqual(abs(got - want), slack, (trace, what, got, want))
            near("clients", seen.clients, of2("client machines"), 1.0)
            near("requests", seen.all() * seen.factor / of2("requests"), 1.0, 0.05)
            near("read", seen.read * seen.factor / 1e9 / of2("read data, GB"), 1.0, 0.08)
            near("written", seen.written * seen.factor / 1e9 / of2("write data, GB"), 1.0, 0.08)
            near("busy", 100.0 - seen.percent_within(4), busy, 0.5)
            for name in seen.requests:
                published = INPUTS.number(table, "DirReadWrite" if name == "DirRW" else name, "percent")
                near(name, seen.percent(name), published, 1.0)

    def test_the_same_seed_gives_the_same_trace_and_another_another(self):
        shape = traces.Shape(INPUTS, "afs")
        trace = lambda seed, minutes: list(traces.client_minutes(shape, seed, minutes))
        long, short = trace(5, 200), trace(5, 100)
        self.assertEqual(long[: len(short)], short, "fewer minutes are the beginning")
        self.assertTrue(len(long) > len(short) and trace(6, 100) != short)
        self.assertEqual([one[:2] for one in long], sorted(one[:2] for one in long))
        for _, client, made in long:
            self.assertTrue(made and client < shape.clients)
            self.assertEqual([one[0] for one in made], sorted(one[0] for one in made))


def measured(more=(), warm=None):
    """Costs of a server on which a call without a size takes 10 µs, and one with a size as many more as it has KB."""
    calls = {call: [[0, 10]] for call in ["FetchStatus", "StoreStatus", "CreateFile", "Rename", "Others", "BulkStatus", "RemoveFile"]}
    calls |= {call: [[0, 10], [1000, 11]] for call in ["FetchData", "StoreData"]}
    return Costs({"what": "a test", "calls": {**calls, **dict(more)}, "warm_client": warm})


def warm(**calls):
    return {"minutes": 10, "opens_per_minute": 171, "directories": 8, "calls_per_minute": calls}


def work(found, trace="afs"):
    sheet = model.table7(INPUTS, trace)
    replay.add_work(sheet, INPUTS, trace, found)
    return sheet


class MeasuredCosts(unittest.TestCase):
    def test_a_file_of_costs_is_checked(self):
        of = lambda points: Costs({"what": "x", "calls": {"FetchData": points}})
        self.assertEqual(of([[0, 30], [1000, 2e6]]).points("FetchData"), [(0.0, 3e-5), (1000.0, 2.0)])
        for wrong in [[], [[1, 1], [1, 2]], [[2, 1], [1, 2]], [[0, -1]], [[-1, 1]]]:
            self.assertRaisesRegex(ValueError, "the points of FetchData are none", of, wrong)
        for wrong in [{**warm(GetCapability=0.5), "opens_per_minute": 0}, warm(GetCapability=-1.0)]:
            self.assertRaisesRegex(ValueError, "warm client", measured, warm=wrong)
        with tempfile.TemporaryDirectory() as folder:
            for text in ["{", '{"calls": {}}', '{"what": "x", "calls": {"FetchData": 7}}', "[]"]:
                path = Path(folder, "costs")
                path.write_text(text)
                self.assertRaises(ValueError, Costs.read, path)

    def test_the_work_of_table_7_is_that_of_its_requests_at_the_measured_costs(self):
        sheet = work(measured())
        requests = sum(row[1] for row in sheet.rows if row[0] not in ["Open", "total"])
        # Every request of the trace reaches a server with the disks behind it, and costs ten microseconds at least.
        self.assertGreater(sheet.number("total", "SAD_here"), requests * 1e3 * 1e-5)
        self.assertLess(abs(sheet.number("FetchStatus", "SAD_here") - sheet.number("FetchStatus", "count_k") / 100.0), 0.06)
        self.assertEqual((sheet.number("FetchStatus", "NASD_here"), sheet.number("Open", "SAD_here")), (0.0, 0.0))
        self.assertGreater(sheet.number("Open", "NASD_here"), 0.0)
        self.assertGreater(sheet.number("FetchData", "SAD_here"), sheet.number("FetchData", "NetSCSI_here"))
        self.assertEqual(sheet.number("total", "SAD_here_pct"), 100.0)
        self.assertRaises(NotMeasured, work, measured(), "nfs")

    def test_groups_and_integrated_disks_have_columns_where_they_were_measured(self):
        """Calls for capabilities that the client makes take the place of its opens; bytes of SID are charged as the path's."""
        self.assertFalse({"SID_here", "NASD_groups_here"} & set(work(measured()).columns))
        more = {"GetCapability": [[0, 20]], PATH_READ: [[0, 5]], PATH_STORE: [[0, 5]], CAPABILITIES_BY_REQUESTS: [[8, 30]]}
        sheet = work(measured(more, warm(GetCapability=2.0)))
        # 480.8 thousand opens at 20 µs; two calls of 30 µs in each of 2,809 minutes.
        self.assertEqual([sheet.number("Open", f"{name}_here") for name in ["NASD", "NASD_groups", "SID"]], [9.6, 0.2, 0.2])
        self.assertLess(sheet.number("FetchData", "SID_here"), sheet.number("FetchData", "SAD_here"))
        self.assertEqual(sheet.number("FetchStatus", "SID_here"), sheet.number("FetchStatus", "SAD_here"))
        self.assertLess(sheet.number("total", "NASD_groups_here"), sheet.number("total", "NASD_here"))
        # Layouts are charged at the cost of one call for as many files as it can have, renewals by directories.
        more |= {"GetLayout": [[1, 10], [32, 40]], RENEWALS_BY_REQUESTS: [[8, 20]]}
        self.assertEqual(work(measured(more, warm(GetLayout=1.0, GetCapability=1.0))).number("Open", "NASD_groups_here"), 0.2)
        # A call that was counted and has no cost.
        self.assertNotIn("NASD_groups_here", work(measured(more, warm(StatusAndCapability=1.0))).columns)

    def test_writes_at_drives_are_charged_a_room_and_a_commit_where_they_were_measured(self):
        """A room and a commit of the mean size for each store, in the place of the FetchStatus that the paper charges."""
        here = lambda found, row, system: work(found).number(row, f"{system}_here")
        stores, before = work(measured()).number("StoreData", "count_k") * 1e3, here(measured(), "StoreData", "NASD")
        self.assertLess(abs(before - stores * 10e-6), 0.06, "a FetchStatus")
        self.assertEqual(here(measured({"Commit": [[1, 100]]}), "StoreData", "NASD"), before, "a commit alone is not all")
        rooms = {"Commit": [[1, 100], [1e6, 100]], "GetRoom": [[1, 30], [1e6, 30]], CAPABILITIES_BY_REQUESTS: [[8, 30]]}
        both = measured(rooms)
        self.assertLess(abs(here(both, "StoreData", "NASD") - stores * 130e-6), 0.06)
        for system in ["SAD", "NetSCSI"]:
            self.assertEqual(here(both, "StoreData", system), here(measured(), "StoreData", system), system)
        self.assertEqual(here(both, "FetchData", "NASD"), 0.0)
        groups = measured(rooms, warm(GetCapability=2.0))
        self.assertEqual(here(groups, "StoreData", "NASD_groups"), here(both, "StoreData", "NASD"))
        self.assertEqual(here(groups, "StoreData", "NASD_groups_by_rule"), before)
        self.assertEqual(here(groups, "Open", "NASD_groups_by_rule"), here(groups, "Open", "NASD_groups"))

    def test_a_table_has_the_calls_that_were_measured(self):
        sheet = costs.table("table4b", measured({"RemoveFile": [[0, 10]]}))
        self.assertEqual((sheet.columns, sheet.rows[1]), (["bytes", "FetchData", "StoreData", "RemoveFile"], [1000.0, 11.0, 11.0, None]))
        self.assertEqual(costs.table("table4d", measured()).number("Others", "microseconds"), 10.0)
        self.assertEqual([costs.table(name, measured()) for name in ["table4c", "table3d"]], [None, None])


class Replay(unittest.TestCase):
    def test_a_request_waits_for_those_before_it(self):
        # The second waits 1 s, the third finds the processor idle.
        served = replay.serve([(0, 0, 0), (1000, 1, 0), (5000, 1, 0), (6000, 2, 0)], [[(0.0, 2.0)], [(0.0, 1.0)], None])
        self.assertEqual(served, (4.0, 6.0, (2.0 + 2.0 + 1.0) / 3.0))
        self.assertEqual(replay.serve([], []), (0.0, 0.0, 0.0))

    def test_the_interval_is_students(self):
        # Standard deviation 1.5811, over the root of 5: 0.7071.
        point = replay.Point(10, [], {})
        point.served = {"SAD": [(float(value),) for value in range(1, 6)]}
        mean, half = point.interval("SAD", 0)
        self.assertTrue(mean == 3.0 and abs(half - 1.5075) < 1e-3, half)

    def test_drawn_curves_are_near_the_means_of_the_tables_and_the_text_holds(self):
        sheet, compared = replay.figure6(INPUTS), 0
        for name, slack in [("nfs_SAD", 0.15), ("nfs_NetSCSI", 0.15), ("afs_SAD", 0.20), ("afs_NetSCSI", 0.15), ("afs_NASD", 0.15)]:
            # Few client-minutes differ too much from one another.
            for row in [row for row in sheet.rows if row[0] >= 60.0]:
                pair = numbers([sheet.cell(row, f"{name}_drawn"), sheet.cell(row, name)])
                if len(pair) == 2:
                    self.assertLess(abs(pair[0] / pair[1] - 1.0), slack, (name, pair))
                    compared += 1
        self.assertGreater(compared, 15)
        sheet = replay.figure7(INPUTS, None)
        found = {(row[0], row[1], row[2]): row[3] for row in sheet.rows}
        less = lambda system: found["NFS", 90.0, f"{system} less than SAD by, %"]
        self.assertTrue(30.0 < less("NetSCSI") < 45.0 and 90.0 < less("NASD") < 99.0, (less("NetSCSI"), less("NASD")))
        for trace in ["NFS", "AFS"]:
            sad, netscsi, nasd = (found[trace, 90.0, f"{system}, processor, s"] for system in SYSTEMS)
            self.assertTrue(sad > netscsi > nasd, (trace, sad, netscsi, nasd))
        self.assertEqual(found["NFS", "", "first overrun, NASD"], "none")
        # Its processor needs more than a minute for 120 client-minutes.
        self.assertLessEqual(found["AFS", "", "first overrun, SAD"], 120.0)

    def test_costs_that_were_measured_are_used_for_the_traces_that_they_cover(self):
        flat = {call: [[0, 100]] for call in ["FetchData", "StoreData"]}
        sheet = replay.figure7(INPUTS, measured(flat))
        self.assertEqual({row[0] for row in sheet.rows}, {"AFS"}, "NFS lacks its calls")
        self.assertRaises(NotMeasured, replay.figure7, INPUTS, Costs({"what": "x", "calls": {"FetchStatus": [[0, 1]]}}))


class Closed(unittest.TestCase):
    def test_one_client_waits_for_nobody_and_many_for_the_slowest(self):
        demands = Demands(100.0, 10.0, 5.0)
        self.assertEqual(demands.at_load(1), (100.0, 0.1, 0.05))
        elapsed, processor, disk = demands.at_load(1000)
        self.assertTrue(abs(elapsed - 10_000.0) < 1.0 and abs(processor - 1.0) < 1e-3 and abs(disk - 0.5) < 1e-3)

    def test_two_clients_wait_half_a_service(self):
        """A machine and a repairman: by hand for two clients, one station of 1 s and 1 s alone."""
        elapsed, processor, _ = Demands(2.0, 1.0).at_load(2)
        self.assertTrue(abs(elapsed - 2.5) < 1e-12 and abs(processor - 0.8) < 1e-12)
        self.assertEqual(Demands(0.0, 0.0).at_load(3)[0], 0.0)

    def test_times_of_other_loads_follow_from_load_1_within_a_fifth(self):
        """The paper's own other loads are a check of the model: times within a fifth, for all that it leaves out."""
        got, want = dict(closed.table7(PAPERS, {}).points("load_units", "overall")), PAPERS[0].sheet("table6").points("load_units", "overall")
        self.assertEqual((len(want), max(got)), (7, 500.0))
        for load, seconds in want:
            self.assertLess(abs(got[load] / seconds - 1.0), 0.2, load)

    def test_load_1_is_as_printed_and_measured_numbers_stand_beside(self):
        here = {"andrew": Demands(2.0, 0.2)}
        self.assertEqual(closed.table7(PAPERS, here).rows[0], [1.0, 8.1, 2.7, 949.0, 10.0, 2.0])
        self.assertEqual(closed.figure1(PAPERS, here).rows[0], [1.0, None, 100.0, 100.0])
        here = {"nfs": Demands(4.0, 1.0), "kafs": Demands(4.0, 0.2)}
        first = lambda told, here: numbers(closed.compared(PAPERS, told, here).rows[0])
        self.assertEqual(first("overall", here), [1.0, 511.0, 588.0, 564.0, 4.0, 4.0])
        self.assertEqual(first("processor", here), [1.0, 22.0, 3.0, 3.0, 25.0, 5.0])
        self.assertEqual(first("disk", here), [1.0, 9.0, 4.0])
        self.assertEqual(first("server", {}), [1.0, 22.0, 9.0, 3.0, 4.0, 3.0])
        self.assertEqual(closed.compared(PAPERS, "server", here).columns[-2:], ["measured_nfs", "measured_kafs"])

    def test_a_measured_table_gets_the_other_loads(self):
        sheet = Sheet.of(["load_units", "overall: s", "copy: s"])
        sheet.rows.append([1.0, 2.0, 0.5])
        closed.more_loads(sheet, Demands(2.0, 0.2))
        self.assertEqual((len(sheet.rows), sheet.rows[-1]), (len(closed.LOADS), [500.0, 100.0, None]))

    def test_nfs_falls_behind_andrew_where_the_paper_says(self):
        """Section 5.3: "about 3" with a warm cache, "about 4" with a cold one."""
        paper = closed.Printed(PAPERS).compared()
        self.assertEqual([closed.crossing(paper["nfs"], paper[cache]) for cache in ["warm", "cold"]], [3, 4])
        self.assertIsNone(closed.crossing(Demands(1.0, 0.1), Demands(1.0, 0.1)))


class Axes(unittest.TestCase):
    def test_the_numbers_on_an_axis_are_round(self):
        for positions, is_log, want in [([10.0, 120.0], False, "20 40 60 80 100 120"), ([0.0, 1.0], False, "0 0.2 0.4 0.6 0.8 1"),
                                        ([0.0, 2.69897], True, "1 2 5 10 20 50 100 200 500"), ([-4.0, 2.0], True, "0.0001 0.001 0.01 0.1 1 10 100"),
                                        ([-2.0, -1.0], True, "0.01 0.02 0.05 0.1")]:
            self.assertEqual(" ".join(plots.Axis(positions, is_log).labels()), want)
        self.assertEqual(plots.Axis([0.0, 6.0], True).labels()[-1], "1000000")
        alone = plots.Axis([3.0], False)
        self.assertTrue(alone.low < 3.0 < alone.high)

    def test_every_plot_is_of_columns_of_its_entry(self):
        entries = {entry.id: entry for paper in PAPERS for entry in paper.entries}
        for name, (axis, _, columns, _, *form) in plots.CHARTS.items():
            sheet = form[0](entries[name].sheet) if form else entries[name].sheet
            self.assertLessEqual({axis[0], *columns}, set(sheet.columns), name)


class Report(unittest.TestCase):
    ENVIRONMENT = {"version": "0.0-test", "kernel": "6", "processor": "x", "cores": 1, "memory_bytes": 0, "peers": {}}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def files(self, **named):
        """Files of a report of these results, by their ids with `_` for `.`: a sheet, or what else is in a result."""
        for name, said in named.items():
            name = name.replace("_", ".")
            said = {"outcome": "ran", "sheet": said.written(), "notes": []} if isinstance(said, Sheet) else said
            said = {"format": 1, "id": name, "began": "2026-11-23T00:00:00Z", "seconds": 1.0, "quick": True, "environment": self.ENVIRONMENT, **said}
            (self.folder / f"{name}.json").write_text(json.dumps(said))
        return pages.Report(PAPERS, self.folder).files()

    def test_every_table_figure_claim_and_slip_is_in_both_pages(self):
        files = self.files()
        html, markdown = files.pop("index.html"), files.pop("index.md")
        for paper in PAPERS:
            for entry in paper.entries:
                self.assertIn(f'<section id="{entry.id}">', html)
                self.assertIn(f"(`{entry.id}`)", markdown)
            for text in [claim["says"] for claim in paper.claims] + [slip for entry in paper.entries for slip in entry.slips]:
                self.assertIn(pages.escaped(text), html)
                self.assertIn(text, markdown)
        self.assertTrue(len(files) > 12 and all(plot.startswith("<svg") for plot in files.values()), len(files))
        for outside in ["http-equiv", "src=", "<script", "<link"]:
            self.assertNotIn(outside, html, "the page refers to nothing else")
        self.assertNotIn("gibson97.fig7.svg", files, "the paper tells no points")
        # Each plot that stands alone has its own colours, and what scrolls is reached by keyboard.
        self.assertTrue(all(plot.count("prefers-color-scheme: dark") == 1 for plot in files.values()))
        self.assertEqual(html.count('class="scroll"'), html.count('role="region" tabindex="0"'))
        self.assertFalse("<th>" in html or "<th class" in html, "each has a scope")
        for one in ["<main>", "</main>", "<nav aria-label=", '<th scope="row"', '<th scope="col"']:
            self.assertIn(one, html)
        self.assertEqual(html.count("<style>"), 1, "rules of a plot would be rules of the page")

    def test_the_pages_tell_when_and_how_long(self):
        files = self.files(gibson97_table2={"outcome": "failed", "error": "no", "began": "2026-11-23T07:08:09.123456789Z", "seconds": 2.345_678})
        for page in [files["index.html"], files["index.md"]]:
            self.assertEqual(page.count("Began "), 1)
            self.assertIn("Began 2026-11-23 07:08:09 UTC, took 2.35 s.", page)
            self.assertIn("“Not at hand” is", page)
            self.assertIn("Failed: no", page)
        self.assertIn("(#gibson97.fig7): not run", files["index.md"])
        self.assertIn('<a id="gibson97.fig7"></a>', files["index.md"])

    def curves(self, traces_, names, minutes):
        sheet = Sheet.of(["trace", "client_minutes", "what", "value", "value_ci90"])
        sheet.rows = [[trace, at, f"{name}, processor, s", at, 1.0] for trace in traces_ for name in names for at in minutes]
        return sheet

    def test_no_two_columns_of_a_plot_look_alike(self):
        """There are eight colours; the ninth column and the tenth are dashed."""
        plot = self.files(gibson97_fig7=self.curves(["NFS", "AFS"], ["SAD", "NetSCSI", "NASD", "SID", "NASD_groups"], [20.0, 80.0]))["gibson97.fig7.svg"]
        is_dashed = lambda name: "stroke-dasharray" in plot.split(name)[0].rsplit("<polyline", 1)[1]
        names = ["nfs NetSCSI, here", "nfs NASD groups, here", "afs SID, here", "afs NASD groups, here"]
        self.assertEqual([is_dashed(name) for name in names], [False, False, True, True])

    def test_what_only_a_result_has_is_plotted_beside_the_papers_columns(self):
        fig6 = Sheet(["client_minutes", "nfs_SAD", "nfs_SAD_drawn", "nfs_SAD_drawn_ci90"], rows=[[90.0, 29.0, 31.0, 2.0]])
        fig7 = self.curves(["NFS"], ["SAD"], [90.0])
        fig7.rows += [["NFS", 90.0, "SAD, elapsed, s", 61.0, 2.0], ["NFS", 90.0, "largest SAD / NASD", 9.0, ""]]
        fig1 = Sheet(["load_units", "ran_prototype"], rows=[[1.0, 100.0], [5.0, 150.0]])
        files = self.files(gibson97_fig6=fig6, gibson97_fig7=fig7, howard88_fig1=fig1)
        self.assertEqual(files["gibson97.fig6.svg"].count(", here"), 1, "the draws stand for the means")
        self.assertIn("ran prototype, here", files["howard88.fig1.svg"])
        plot = files["gibson97.fig7.svg"]
        self.assertTrue("nfs SAD, here" in plot and "paper" not in plot and "afs" not in plot, plot)

    def test_what_lies_far_below_the_papers_is_not_a_line_on_the_ground(self):
        """What is a thousandth of the paper's has a shape too: the axis is logarithmic then. Not where a value is zero."""
        for last, has, lacks in [(0.5, "1", "200"), (0.0, "200", "1")]:
            sheet = Sheet(["file_bytes", "andrew_cold"], rows=[[3.0, 0.25], [24576.0, last]])
            lines = self.files(howard88_table14=sheet)["howard88.table14.svg"].splitlines()
            self.assertTrue(has in lines and lacks not in lines, last)

    def test_numbers_obtained_here_stand_beside_the_papers_with_their_spread(self):
        sheet = Sheet.of(["file_bytes: bytes", "andrew_warm: ms", "andrew_warm_min: ms", "andrew_warm_max: ms"])
        sheet.rows = [[3.0, 0.25, 0.125, 0.5], [1113.0, None, None, None]]
        ran = {"outcome": "ran", "sheet": sheet.written(), "notes": ["A note <of> the run."]}
        files = self.files(howard88_table14=ran, howard88_table2={"outcome": "refused", "lacks": "a month of use"})
        html, markdown = files["index.html"], files["index.md"]
        self.assertIn('<td class="n">0.25 (0.125–0.5)</td>', html)
        self.assertIn("| 0.25 (0.125–0.5) ", markdown)
        for text in ["160 ± 34.6", "<i>not at hand</i>", "A note &lt;of&gt; the run.", "andrew 0.0-test", ">load units</th>"]:
            self.assertIn(text, html)
        self.assertNotIn("load units, load units", html)
        self.assertTrue(all("Refused: it lacks a month of use" in page for page in [html, markdown]))
        self.assertIn("andrew warm, here", files["howard88.table14.svg"])
        self.assertNotIn("here", files["gibson97.fig6.svg"])

    def test_other_loads_follow_from_what_was_measured_at_load_1(self):
        ran = Sheet.of(["load_units", "ran_cpu: %", "ran_overall: s", "ran_overall_min: s", "ran_overall_max: s"])
        ran.rows = [[1.0, 12.5, 2.0, 1.5, 3.0]]
        needs = [["andrew", {"elapsed": 2.0, "processor": 0.2}], ["ran", {"elapsed": 2.0, "processor": 0.2}]]
        said = {"outcome": "ran", "sheet": ran.written(), "notes": ["so many processes"], "demands": needs}
        beside = {"outcome": "ran", "sheet": Sheet([]).written(), "notes": [], "demands": [["nfs", {"elapsed": 2.0, "processor": 0.4}], needs[0]]}
        self.files(howard88_table7=said, howard88_fig3=beside)
        found = lambda name: results.found(PAPERS, next(entry for entry in PAPERS[0].entries if entry.id == name), self.folder)
        table7 = found("howard88.table7")
        self.assertEqual(table7.sheet.rows[0], [1.0, 8.1, 2.7, 949.0, 10.0, 2.0, 12.5, 2.0, 1.5, 3.0, 10.0, 2.0])
        self.assertEqual(numbers(table7.sheet.rows[-1])[-1], 100.0, "other loads were not run")
        self.assertEqual(table7.notes, [results.MODELLED, results.MEASURED, "so many processes"])
        self.assertEqual(found("howard88.fig3").sheet.columns[-2:], ["measured_nfs", "measured_andrew"])
        self.assertIn("By it a run on nfs takes longer than on Andrew from load 2.", found("howard88.fig3").notes)
        self.assertEqual(found("howard88.fig1").notes, [results.MODELLED, results.NO_MOUNT])

    def test_what_has_a_result_is_computed_again_with_other_costs_alone(self):
        entry = next(entry for paper in PAPERS for entry in paper.entries if entry.id == "gibson97.table7-afs")
        computed = lambda *words, **more: results.Computer(PAPERS, self.folder, *words, **more).compute(entry)
        self.assertEqual([computed(), computed(), computed(again=True)], [True, False, True])
        flat = measured({call: [[0, 9]] for call in ["FetchData", "StoreData"]})
        self.assertEqual([computed(costs=flat), computed(costs=flat), computed()], [True, False, False])
        found = results.read(self.folder, entry.id)
        self.assertIn("Costs: a test.", found.notes)
        self.assertIsNotNone(found.sheet.number("total", "NASD_here_pct"))
        (self.folder / f"{entry.id}.json").write_text("{")
        self.assertTrue(computed(), "a broken file is no result")


if __name__ == "__main__":
    unittest.main()
