#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_arrow.py LIBTUTTI: tables of pyarrow through tutti and back, which must be equal.

Run by hand, since no Debian package has pyarrow (last with 26.0.1); tests/capi/arrow_test.c holds the same layouts without it.
"""
import ctypes
import datetime
import sys

import pyarrow as pa

tutti = ctypes.CDLL(sys.argv[1])
tutti.tutti_error_get_text.restype = ctypes.c_char_p


class Failure(Exception):
    pass


def check(code, error):
    if code != 0:
        raise Failure(tutti.tutti_error_get_text(error).decode())


def through(reader, columns=(), batch_rows=1000):
    """The table after it was a dataset."""
    stream, error, pipeline, dataset = ctypes.create_string_buffer(40), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    reader._export_to_c(ctypes.addressof(stream))
    check(tutti.tutti_pipeline_create(None, ctypes.byref(pipeline), ctypes.byref(error)), error)
    tutti.tutti_pipeline_set_arrow_stream(pipeline, stream)
    tutti.tutti_pipeline_begin(pipeline, b'arrow', 1)
    for column in columns:
        tutti.tutti_pipeline_set_string(pipeline, b'columns', column.encode())
    tutti.tutti_pipeline_end(pipeline)
    code = tutti.tutti_pipeline_build(pipeline, ctypes.byref(dataset), ctypes.byref(error))
    tutti.tutti_pipeline_unref(pipeline)
    check(code, error)
    back = ctypes.create_string_buffer(40)
    code = tutti.tutti_dataset_to_arrow(dataset, ctypes.c_int64(0), ctypes.c_int64(batch_rows), None, back, ctypes.byref(error))
    tutti.tutti_dataset_unref(dataset)
    check(code, error)
    return pa.RecordBatchReader._import_from_c(ctypes.addressof(back)).read_all()


def expected(column):
    """Texts come back as large binary, lists as large lists, times as the integers they are."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return expected(column.dictionary_decode())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return pa.array([[item.encode() if isinstance(item, str) else item for item in row] for row in column.to_pylist()],
                        pa.large_list(expected(pa.array([], kind.value_type)).type))
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary()).cast(pa.large_binary())
    if pa.types.is_date32(kind):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    return column


def table(rows):
    columns = {f'n{i}': pa.array([j % 100 for j in range(rows)], kind) for i, kind in enumerate(
        [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()])}
    columns['b'] = pa.array([j % 3 == 0 for j in range(rows)], pa.bool_())
    columns['s'] = pa.array(['ä' * (j % 7) for j in range(rows)], pa.string())
    columns['S'] = pa.array(['x' * (j % 5) for j in range(rows)], pa.large_string())
    columns['z'] = pa.array([bytes([j % 256]) * (j % 4) for j in range(rows)], pa.binary())
    columns['w'] = pa.array([bytes([j % 256]) * 3 for j in range(rows)], pa.binary(3))
    columns['l'] = pa.array([[j, j + 1] for j in range(rows)], pa.list_(pa.float32(), 2))
    for kind, make in enumerate([pa.list_, pa.large_list, pa.list_view, pa.large_list_view]):
        columns[f'v{kind}'] = pa.array([[j + i for i in range(j % 4)] for j in range(rows)], make(pa.int32()))
        columns[f'vs{kind}'] = pa.array([['ä' * i for i in range(j % 3)] for j in range(rows)], make(pa.string()))
    columns['vb'] = pa.array([[i % 2 == 0 for i in range(j % 5)] for j in range(rows)], pa.list_(pa.bool_()))
    columns['vl'] = pa.array([[[j, i] for i in range(j % 3)] for j in range(rows)], pa.list_(pa.list_(pa.int16(), 2)))
    columns['D'] = pa.array(['abc'[j % 3] for j in range(rows)], pa.string()).dictionary_encode()
    columns['ll'] = pa.array([[[j, 1, 2], [3, 4, j]] for j in range(rows)], pa.list_(pa.list_(pa.int16(), 3), 2))
    columns['d'] = pa.array([datetime.date(2020, 1, 1 + j % 28) for j in range(rows)], pa.date32())
    columns['t'] = pa.array([datetime.datetime(2020, 1, 1, j % 24) for j in range(rows)], pa.timestamp('us'))
    return pa.table(columns)


def same(source, result):
    for name in source.column_names:
        wanted, got = source[name], result[name]
        wanted = pa.chunked_array([expected(chunk) for chunk in wanted.chunks], type=None) if wanted.num_chunks else wanted
        if wanted.to_pylist() != got.to_pylist() or (wanted.num_chunks and str(wanted.type) != str(got.type).replace(' not null', '')):
            raise Failure(f'column {name} differs: {wanted.type} {got.type}')


def main():
    for rows in (0, 1, 10, 1000):
        for chunk in (1, 7, 64, 5000):
            for skip in (0, 3):
                source = table(rows).slice(skip)
                for batch_rows in (1, 13, 4096):
                    result = through(source.to_reader(max_chunksize=chunk), batch_rows=batch_rows)
                    result.validate(full=True)
                    same(source, result)
    nulls = pa.table({'x': pa.array([1, None, 3], pa.int32()), 's': pa.array(['a', None, 'c']),
                      'l': pa.array([[1, 2], None, [None, 4]], pa.list_(pa.int64(), 2)),
                      'v': pa.array([[1, 2], None, [None, 4, 5]], pa.list_(pa.int64()))})
    for name in nulls.column_names:
        try:
            through(nulls.to_reader(), [name])
            raise AssertionError(name)
        except Failure as failure:
            assert f"column '{name}', row 1: the value is null" in str(failure), failure
    filled = through(nulls.to_reader(), ['x = -1', 's = none', 'l = 9', 'v = 9'])
    assert filled['x'].to_pylist() == [1, -1, 3]
    assert filled['s'].to_pylist() == [b'a', b'none', b'c']
    assert filled['l'].to_pylist() == [[1, 2], [9, 9], [9, 4]], filled['l']
    assert filled['v'].to_pylist() == [[1, 2], [], [9, 4, 5]], filled['v']
    for bad in (pa.array([[['a']]]), pa.array([{'a': 1}]), pa.array([[{'a': 1}]]), pa.nulls(2)):
        try:
            through(pa.table({'bad': bad}).to_reader())
            raise AssertionError(bad.type)
        except Failure as failure:
            assert "column 'bad'" in str(failure), failure
    assert tutti.tutti_debug_live_objects(b'dataset') == 0
    assert pa.total_allocated_bytes() < 1 << 20, pa.total_allocated_bytes()
    print('equal')


main()
