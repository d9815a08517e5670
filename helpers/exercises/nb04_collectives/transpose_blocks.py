"""4.6 Transpose blocks (15 min, ●●●○○)

- Draw a matrix of 2 x 2 blocks, a row of blocks on each rank. Which of your blocks does the other rank
  need? And what must happen inside a block?
- Block j of your rows goes to rank j: `x.chunk(world_size, dim=1)`. Each block must be transposed, either by
  the sender or by the receiver. The blocks received from rank i are columns of your result.
- send = [b.T.contiguous() for b in x.chunk(world_size, dim=1)]; got = [torch.empty_like(b) for b in send];
  dist.all_to_all(got, send); return torch.cat(got, dim=1).
"""

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    n = draw.ranks
    rows, columns = n * draw.whole(1, 3), n * draw.whole(1, 3)
    whole = draw.tensor((rows, columns))
    return Case(
        f"a {rows}x{columns} matrix of {whole.dtype}",
        [(part.clone(),) for part in whole.chunk(n)],
        right=PerRank(list(whole.T.contiguous().chunk(n))),
        facts={"bytes": whole.nbytes // n},
        tolerance=0,
        telling=rows > n and columns > n and rows != columns,  # a 1 x 1 block is its own transpose
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("all_to_all",)),
        Calls("all_to_all", 1),
        Calls(
            bytes_per_call="bytes",
            text="passes each element once",
            why="Send each rank only its block.",
        ),
    ),
)
