import { fstatSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { Agent, createServer, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { announce, logFile, newestRecordAt, newestRecordIn, readSpecAndSettle } from './program.ts'

/** Runs a database replica: copies the primary's log into its file and reports its lag. */
type Spec = { primaryPort: number }

const spec = readSpecAndSettle<Spec>((message) => {
  // Takes over the new port of the primary, because a restarted primary has another port.
  if (message.primaryPort) spec.primaryPort = message.primaryPort
})

const pollMs = 200
const agent = new Agent({ keepAlive: true })

mkdirSync('data', { recursive: true })
const log = openSync(logFile, 'a+', 0o644)
let ownNewestAt = newestRecordAt(logFile)
let primaryNewestAt: number | null = null
let trouble: string | null = null

/** Copies new records of the primary. Returns whether it probably has more records now. */
function copy(): Promise<boolean> {
  const { size } = fstatSync(log)
  return new Promise((resolve, reject) => {
    const request = get(
      { host: '127.0.0.1', port: spec.primaryPort, path: `/log?from=${size}`, agent, timeout: 2000 },
      async (response) => {
        try {
          if (response.statusCode !== 200) throw new Error(`the primary answered ${response.statusCode} at ${size}`)
          let copied = 0
          let text = ''
          for await (const chunk of response) {
            writeSync(log, chunk as Buffer)
            copied += (chunk as Buffer).length
            text = (text + (chunk as Buffer).toString('utf8')).slice(-512)
          }
          primaryNewestAt = Number(response.headers['newest-at'])
          ownNewestAt = newestRecordIn(text) ?? ownNewestAt
          resolve(copied > 512 * 1024)
        } catch (error) {
          response.resume()
          reject(error)
        }
      },
    )
    request.on('timeout', () => request.destroy(new Error('the primary does not answer')))
    request.on('error', reject)
  })
}

announce(
  createServer((_request, response) => {
    const lagSeconds =
      primaryNewestAt === null || ownNewestAt === null ? null : Math.max(0, primaryNewestAt - ownNewestAt) / 1000
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ role: 'replica', bytes: fstatSync(log).size, newestAt: ownNewestAt, lagSeconds, trouble }),
    )
  }),
)

for (;;) {
  let more = false
  try {
    more = await copy()
    trouble = null
  } catch (error) {
    trouble = (error as Error).message
  }
  if (!more) await sleep(pollMs)
}
