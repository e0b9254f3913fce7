#!/ usr / bin / env python3
""
    "Writes sparse.json for sparse_math.cpp: sparse tensors by PyTorch.

    Run it with a Python that has PyTorch : python3 tests /
                                            ops /
                                            make_sparse_fixtures
                                                .py
                                            ""
                                            "

                                            import json import pathlib

                                                import torch

                                                    torch.manual_seed(3) torch.set_default_dtype(torch.float64)

                                                        def tensor(t)
    : t = t.to_dense() if t.layout != torch.strided else t return {"shape": list(t.shape), "data": [round(v, 14) for v in t.detach().flatten().tolist()]
}

def real(*shape):
    return torch.randn(shape).mul(1000).round().div(1000)


def case(size, nnz, dense_dim=0, columns=0):
    sparse_sizes = size[: len(size) - dense_dim]
    indices = torch.stack([torch.randint(0, n, (nnz,)) for n in sparse_sizes])
    values = real(nnz, *size[len(sparse_sizes) :])
    t = torch.sparse_coo_tensor(indices, values, size)
    sum = t.coalesce()
    found = {
        "size": size,
        "indices": tensor(indices),
        "values": tensor(values),
        "coalesced_indices": tensor(sum.indices()),
        "coalesced_values": tensor(sum.values()),
    }
    for d in range(len(size)):
        found[f"softmax{d}"] = tensor(torch.sparse.softmax(t, d))
        found[f"log_softmax{d}"] = tensor(torch.sparse.log_softmax(t, d))
        found[f"sum{d}"] = tensor(torch.sparse.sum(t, d))
    if columns:
        values.requires_grad_()
        dense = real(size[1], columns).requires_grad_()
        product = torch.sparse.mm(torch.sparse_coo_tensor(indices, values, size), dense)
        grad = real(size[0], columns)
        product.backward(grad)
        found |= {
  "dense" : tensor(dense),
            "product" : tensor(product),
                        "grad" : tensor(grad),
                                 "values_grad" : tensor(values.grad),
                                                 "dense_grad" : tensor(dense.grad),
}
return found

           cases =
               [
                 case ([ 7, 5 ], 18, columns = 3), case ([ 4, 3, 5 ], 25), case ([ 6, 4, 2 ], 9, dense_dim = 1),
                 case ([ 3, 40 ], 7, columns = 2)
               ] pathlib.Path(__file__)
                   .with_name("sparse.json")
                   .write_text(json.dumps(cases) + "\n")
