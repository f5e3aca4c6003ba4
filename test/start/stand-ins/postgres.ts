import { startPostgres } from '../../../start/postgres.ts'

// Starts PostgreSQL in the directory it is given and stays until somebody kills it.
const { url, process: server } = await startPostgres({ dir: process.argv[2] ?? '' })
process.stdout.write(`${JSON.stringify({ url, pid: server.pid })}\n`)
setInterval(() => undefined, 60_000)
