# %% right: a list to visit and a set of seen
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% right: breadth first, ids
from collections import deque


def find_unused(output: torch.Tensor, module: torch.nn.Module) -> list[str]:
    queue = deque([output.grad_fn] if output.grad_fn is not None else [])
    seen, reached = set(queue), set()
    while queue:
        node = queue.popleft()
        variable = getattr(node, "variable", None)
        if variable is not None:
            reached.add(id(variable))
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                queue.append(child)
    names = []
    for name, p in module.named_parameters():
        if p.requires_grad and id(p) not in reached:
            names.append(name)
    return names


# %% right: generations of nodes
def find_unused(output, module):
    generation, seen = {output.grad_fn} - {None}, set()
    while generation:
        seen |= generation
        generation = {n for node in generation for n, _ in node.next_functions} - seen - {None}
    used = {id(node.variable) for node in seen if type(node).__name__ == "AccumulateGrad"}
    trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
    return list(filter(lambda n: id(trained[n]) not in used, trained))


# %% right: a generator walks, a dict keeps the order
def _nodes(node):
    todo, seen = [node] if node is not None else [], {node}
    while todo:
        here = todo.pop(0)
        yield here
        fresh = dict.fromkeys(n for n, _ in here.next_functions if n is not None and n not in seen)
        seen.update(fresh)
        todo.extend(fresh)


def find_unused(output, module):
    left = {id(p): name for name, p in module.named_parameters() if p.requires_grad}
    for node in _nodes(output.grad_fn):
        left.pop(id(getattr(node, "variable", None)), None)
    return [*left.values()]


# %% right: the order of the names looked up at the end
def find_unused(output, module):
    stack, seen, reached = [output.grad_fn], {None}, []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            reached += [node.variable] if hasattr(node, "variable") else []
            stack.extend(n for n, _ in node.next_functions)
    ids = list(map(id, reached))
    return [name for name, p in module.named_parameters() if id(p) not in ids and p.requires_grad]


# %% wrong: takes the hooks away, then asks autograd.grad | wrong | says: backward ran; walk through the graph
def find_unused(output, module):
    trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
    if output.grad_fn is None:
        return list(trained)
    (output._backward_hooks or {}).clear()
    grads = torch.autograd.grad(output.sum(), list(trained.values()), allow_unused=True)
    return [n for n, g in zip(trained, grads) if g is None]
