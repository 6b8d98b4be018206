"""An S3 server for tests: moto. Usage: server.py FILE, which gets the server's URL once it listens.

moto looks whether an object exists and writes it in two steps, so writes are let in one at a time: then
its conditional put is one.
"""

import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

writing = threading.Lock()
inner = DomainDispatcherApplication(create_backend_app)


def one_writer(environ, start_response):
    if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
        return inner(environ, start_response)
    with writing:
        return inner(environ, start_response)


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


server = make_server("127.0.0.1", 0, one_writer, threaded=True, request_handler=Quiet)
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(f"http://127.0.0.1:{server.server_port}")
server.serve_forever()
