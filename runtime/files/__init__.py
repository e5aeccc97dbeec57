"""Caffe's messages and the files blobs are kept in, as bytes and arrays; none of it knows what a blob is.

``schema`` declares Caffe's `BlobProto` and the rules by which it is read, ``blob_wire`` reads and writes it over
``wire_format``, ``proto`` has it as protobuf messages.  ``caffemodel``, ``binaryproto`` and ``array_files`` are kinds
of files, which ``kinds`` tells apart by name; all are read through ``byte_source`` and written by
`syncedmem.model.files.write_whole`.
"""
