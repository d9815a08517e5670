"""Draw runs and results with pure functions: lanes, timeline, traffic, wait graph.

Importing this package or one of its modules does not import matplotlib, which is imported only when the first
picture is drawn.

From results to views:
    show             the view of each result
    live             live pages and their still form
Views of a run:
    lanes            output and results of each rank
    timeline         calls over time
    timeline_layout  the position of each bar
    traffic          bytes from rank to rank
    traffic_ledger   calls and bytes of one rank, by phase
    sequence         each rank's calls in words
    wait_graph       which ranks wait for which
    player           a run, step by step
    rounds           rounds of messages
    one_port         messages sorted into rounds
    by_host          ranks and traffic of each host
    rank_endings     each rank's last call, or its part in the failure
    values           a returned value in one line
Views of jobs:
    job_lanes        processes of a job
    restarts         rounds of a job
Views of data and plans:
    before_after     data before and after a collective
    sharding         matrices and their owners
    rank_grid        ranks in a mesh
    memory_bars      memory of each rank
    sample_raster    samples of each rank
    schedule         the schedule of a pipeline
    schedule_times   the times of a schedule
    step_lanes       a training step of several runs
    curve            measured curves
    divergence       the distance between two training runs
Views of a check:
    verdict          a check's result for its reader
    failed_case      the description of a failed case
Parts shared by views:
    picture          arguments and results of views
    drawing          marks as SVG or PNG
    palette          colors and styles
    html_boxes       HTML with inline styles
    page_style       the look of whole pages
    plain            output without control characters
"""
