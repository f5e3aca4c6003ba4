import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
/** Where nothing runs. */
export const emptyDir = mkdtempSync(join(tmpdir(), 'nightshift-cli-'))

export function tokenFile(token: string): string {
  const file = join(emptyDir, token)
  writeFileSync(file, `${token}\n`, { mode: 0o600 })
  return file
}

export type Ended = { code: number | null; stdout: string; stderr: string }

/** The command as a process of its own, without a terminal and without the caller's settings. With `input` null its stdin stays open. */
export function startCli(args: string[], env: Record<string, string> = {}, input: string | null = '') {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: emptyDir, NIGHTSHIFT_STATE_DIR: emptyDir, TZ: 'UTC', ...env },
    stdio: 'pipe',
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    said.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    said.stderr += chunk
  })
  child.stdin.on('error', () => undefined)
  if (input !== null) child.stdin.end(input)
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, ...said }))
  })
  return { child, said, ended }
}

export function runCli(args: string[], env?: Record<string, string>, input?: string): Promise<Ended> {
  return startCli(args, env, input).ended
}

/** The command at a terminal of eighty columns, where somebody types this when it asks. */
export async function runAtTerminal(args: string[], env: Record<string, string> = {}, typed = '') {
  const line = [process.execPath, '--disable-warning=ExperimentalWarning', entry, ...args]
  const child = spawn('script', ['--quiet', '--return', '--command', line.join(' '), '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', HOME: emptyDir, NIGHTSHIFT_STATE_DIR: emptyDir, NO_COLOR: '1', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout.on('data', (chunk) => {
    const wasAsked = shown.includes('[y/N]')
    shown += chunk
    if (!wasAsked && shown.includes('[y/N]')) child.stdin.write(`${typed}\n`)
  })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, shown: shown.replaceAll('\r\n', '\n') }
}
