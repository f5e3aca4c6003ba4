import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('../cli/main.ts', import.meta.url))

/** The agent as a separate process over a state directory that holds its manifest and root key, once it listens. */
export async function startAgent(state: string, listen: string): Promise<{ child: ChildProcess; url: string }> {
  const args = ['mesh', 'agent', '--state', state, '--listen', listen]
  const child = spawn(process.execPath, [entry, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stderr.on('data', (chunk) => {
      said += chunk
      const found = /Listening on (\S+):/.exec(said)?.[1]
      if (found) resolve(found)
    })
    child.once('exit', (code) => reject(new Error(`the agent ended with ${code}: ${said}`)))
  })
  return { child, url }
}
