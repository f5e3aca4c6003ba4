import { randomBytes } from 'node:crypto'
import { utimesSync } from 'node:fs'
import { join } from 'node:path'
import { type Lab, nodeDirectory, ownDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'

/** The log of a tracing that somebody turned on; the node writes to it as long as it is there. No clean-up knows of its directory. */
export const traceLog = 'log/trace.log'

const secondsPerDay = 86_400

/** Turns tracing on, with so many bytes of it rotated away day by day. Returns all files, relative to the node's directory. */
export function traceMuch(lab: Lab, node: NodePlan, bytes: number, bytesPerFile: number): string[] {
  const root = nodeDirectory(lab, node.id)
  ownDirectory(lab, join(root, 'log'))
  writeForNode(lab, join(root, traceLog), `${new Date().toISOString()} trace is on\n`)
  const files = [traceLog]
  for (let left = bytes, day = 1; left > 0; left -= bytesPerFile, day++) {
    const file = `${traceLog}.${day}`
    // Random bytes, which no file system compresses or leaves out.
    writeForNode(lab, join(root, file), randomBytes(Math.ceil(Math.min(left, bytesPerFile))))
    const atSeconds = Date.now() / 1000 - day * secondsPerDay
    utimesSync(join(root, file), atSeconds, atSeconds)
    files.push(file)
  }
  return files
}
