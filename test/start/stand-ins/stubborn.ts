import { createServer } from 'node:http'

// Never becomes ready and does not go when asked to.
process.on('SIGTERM', () => {})
createServer((_request, response) => response.writeHead(503).end('{"database":"down"}')).listen(
  Number(process.env.PORT),
  '127.0.0.1',
)
