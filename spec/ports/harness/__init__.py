"""The program that tests a shared library: it loads the library, and speaks the protocol of ports for it.

``python spec/ports/harness ./libport.so`` reads requests and writes answers as `protocol` describes them.  It is
started for every library and every program that is shortened, so it needs only the standard library, imports nothing
else of this project, and starts quickly.

``abi`` reads the C ABI from its header.  ``heap`` is the memory that is lent to the library.  ``library`` answers the
requests with a library.  ``__main__`` serves any object that answers requests.
"""

VERSION = 1
"""The version of the protocol of ports."""
