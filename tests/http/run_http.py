#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_http.py TEST MODULE: runs the test program against a server of this process, which is asked for ranges of files and does
what servers do: answers late, breaks off, moves, has no ranges. Nothing leaves the machine.
"""
import collections
import http.server
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading

LINES = ''.join(f'line {i}\n' for i in range(20000)).encode()
SHORT = b'line 0\nline 1\nline 2\n'

seen = collections.Counter()
seen_lock = threading.Lock()
end_of_test = threading.Event()


def count(key):
    """How often this was called with the key before."""
    with seen_lock:
        seen[key] += 1
        return seen[key] - 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def answer(self, status, body=b'', headers=()):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def wanted(self, contents):
        """The range asked for, as first and end, or None."""
        match = re.fullmatch(r'bytes=(\d+)-(\d+)', self.headers.get('Range', ''))
        return (int(match[1]), min(int(match[2]) + 1, len(contents))) if match else None

    def part(self, contents, shift=0, tag='"1"', keep=None):
        """Answers with the range; `keep` bytes of it are sent before the connection breaks."""
        first, end = self.wanted(contents)
        if first >= len(contents):
            return self.answer(416, headers=[('Content-Range', f'bytes */{len(contents)}')])
        body = contents[first:end]
        self.send_response(206)
        self.send_header('Content-Range', f'bytes {first + shift}-{end - 1 + shift}/{len(contents)}')
        self.send_header('Content-Length', str(len(body)))
        self.send_header('ETag', tag)
        self.end_headers()
        self.wfile.write(body if keep is None else body[:keep])
        if keep is not None:
            self.close_connection = True
        return None

    def do_GET(self):
        before = count((self.path, self.headers.get('Range')))
        name = self.path.strip('/').replace('-', '_').replace('.txt', '')
        getattr(self, 'get_' + name.split('?')[0], lambda _: self.answer(404, b'nothing here'))(before)

    def get_lines(self, _):
        self.part(LINES)

    def get_empty(self, _):
        self.part(b'')

    def get_no_ranges(self, _):
        self.answer(200, SHORT)

    def get_no_ranges_large(self, _):
        self.answer(200, LINES)

    def get_no_ranges_truncated(self, before):
        self.send_response(200)
        self.send_header('Content-Length', str(len(SHORT)))
        self.end_headers()
        self.wfile.write(SHORT if before > 0 else SHORT[:9])
        self.close_connection = True

    def get_forbidden(self, _):
        self.answer(403)

    def get_secret(self, _):
        if self.headers.get('Authorization') == 'Bearer abc':
            self.part(SHORT)
        else:
            self.answer(401)

    def get_flaky(self, before):
        if before < 2:
            self.answer(500 if before == 0 else 503, b'an error page')
        else:
            self.part(LINES)

    def get_broken(self, _):
        self.answer(500)

    def get_reset(self, before):
        if before == 0:
            self.close_connection = True
        else:
            self.part(LINES)

    def get_truncated(self, before):
        self.part(LINES, keep=100 if before == 0 else None)

    def get_always_truncated(self, _):
        self.part(LINES, keep=100)

    def get_silent(self, _):
        end_of_test.wait(60)
        self.close_connection = True

    # The first blocks come late.
    def get_slow(self, _):
        if self.wanted(LINES)[0] < 20000:
            end_of_test.wait(0.3)
        self.part(LINES)

    def get_moved(self, _):
        self.answer(302, b'over there', [('Location', '/lines.txt')])

    def get_circle(self, _):
        self.answer(302, headers=[('Location', '/circle')])

    def get_to_file(self, _):
        self.answer(302, headers=[('Location', 'file:///etc/passwd')])

    def get_other_range(self, _):
        self.part(LINES, shift=7)

    def get_changing(self, _):
        self.part(LINES, tag=f'"{self.wanted(LINES)[0]}"')


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Clients that leave early are part of the test.
        pass


def start(context=None):
    server = Server(('127.0.0.1', 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def make_certificate(folder):
    """A certificate for this machine that nobody else trusts, and its key."""
    key, certificate = (os.path.join(folder, name) for name in ('key.pem', 'certificate.pem'))
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
                    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate],
                   check=True, capture_output=True)
    return certificate, key


def run(folder):
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = make_certificate(folder)
    secure.load_cert_chain(certificate, key)
    plain_port, secure_port = start(), start(secure)
    # Proxies of the environment must not be asked.
    environment = dict(os.environ, http_proxy='http://127.0.0.1:9', https_proxy='http://127.0.0.1:9', all_proxy='http://127.0.0.1:9')
    status = subprocess.run([sys.argv[1], sys.argv[2], f'http://127.0.0.1:{plain_port}', f'https://127.0.0.1:{secure_port}',
                             certificate], env=environment, check=False).returncode
    end_of_test.set()
    return status


def main():
    with tempfile.TemporaryDirectory() as folder:
        return run(folder)


if __name__ == '__main__':
    sys.exit(main())
