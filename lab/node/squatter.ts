import { createServer } from 'node:http'
import { announce, settle } from './program.ts'

/** A debug server that somebody started by hand on a node's port, and forgot. */
const { port } = settle<{ port: number }>()
process.title = `debug-server 127.0.0.1:${port}`
announce(
  createServer((_, response) => response.end('debugging\n')),
  port,
)
