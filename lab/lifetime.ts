import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { appLogFile } from './app-log.ts'
import { type Lab, nodeDirectory, writeForNode } from './state.ts'

/** Makes a node's service end some seconds after each of its starts, for as long as it is there. Relative to the node's directory. */
export const lifetimeFile = 'etc/lifetime.json'

/** The service is well when it starts and dies again soon: a converge does not repair the cause. */
export function limitLifetime(lab: Lab, node: string): void {
  const text = `${JSON.stringify({ seconds: lab.paceSeconds })}\n`
  writeForNode(lab, join(nodeDirectory(lab, node), lifetimeFile), text)
}

export type Lives = { begun: number; ended: number; isLimited: boolean }

/** How often the service was started since its lifetime is limited, and how often it ended, by its own log. */
export function livesOf(lab: Lab, node: string): Lives {
  const lines = textOf(lab, node, appLogFile).split('\n')
  const count = (word: string) => lines.filter((line) => line.split(' ')[1] === word).length
  return { begun: count('started'), ended: count('fatal'), isLimited: textOf(lab, node, lifetimeFile) !== '' }
}

function textOf(lab: Lab, node: string, file: string): string {
  try {
    return readFileSync(join(nodeDirectory(lab, node), file), 'utf8')
  } catch {
    return ''
  }
}
