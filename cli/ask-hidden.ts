import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'

/** Asks at the terminal without showing what is typed. */
export async function askHidden(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve)
      // A line that never comes is an empty one; Ctrl-C ends the command as it does everywhere.
      lines.once('close', () => resolve(''))
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}
