import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { searchLog } from './node/program.ts'
import { type Lab, nodeDirectory } from './state.ts'

const everyMs = 500
/** Of one file in one round; the rest comes in the next. */
const mostBytes = 256 * 1_024

type File = { path: string; instance: string; from: number }

/** Sends what the web nodes log to a VictoriaLogs, line by line as a collector does, until the lab ends. What it does not take is sent again. */
export function shipLogs(lab: Lab, nodes: readonly { id: string; instance: string }[], url: string): void {
  const files = nodes.map(
    ({ id, instance }): File => ({ path: join(nodeDirectory(lab, id), searchLog), instance, from: 0 }),
  )
  let isBusy = false
  setInterval(async () => {
    if (isBusy) return
    isBusy = true
    for (const file of files) await ship(file, url).catch(() => undefined)
    isBusy = false
  }, everyMs).unref()
}

async function ship(file: File, url: string): Promise<void> {
  const bytes = await readFrom(file)
  const whole = bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1)
  if (whole.length === 0) return
  const rows = whole
    .toString('utf8')
    .split('\n')
    .flatMap((line) => {
      const [, time, text] = /^(\S+) (.*)$/.exec(line) ?? []
      return time && text ? [JSON.stringify({ _time: time, _msg: text, instance: file.instance, file: searchLog })] : []
    })
  const answer = await fetch(`${url}/insert/jsonline?_stream_fields=instance,file`, {
    method: 'POST',
    body: rows.join('\n'),
  })
  if (answer.ok) file.from += whole.length
}

/** What was written since; a file that is shorter than it was begins again. */
async function readFrom(file: File): Promise<Buffer> {
  const handle = await open(file.path).catch(() => null)
  if (!handle) return Buffer.alloc(0)
  try {
    const { size } = await handle.stat()
    if (size < file.from) file.from = 0
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(mostBytes, size - file.from)), {
      position: file.from,
    })
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
