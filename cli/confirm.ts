import { createInterface } from 'node:readline'

/** Is there somebody to ask? In a script or a pipe nobody is. */
export function isAskable(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks at the terminal; whatever is not a yes is a no, and so is a line that never comes. */
export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await new Promise((resolve) => {
      lines.question(`${question} [y/N] `, (line) => resolve(/^y(es)?$/i.test(line.trim())))
      lines.once('close', () => resolve(false))
      // Ctrl-C ends the command as it does everywhere.
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
  }
}
