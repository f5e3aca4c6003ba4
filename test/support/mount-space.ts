import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from './directory.ts'

const program = fileURLToPath(new URL('./confined-process.ts', import.meta.url))

/** What a look came to, or what was said of its sandbox meanwhile. */
export type Looked = {
  sandbox?: string
  lack?: string | null
  exitCode?: number | null
  stdout?: string
  stderr?: string
  error?: string
  said?: string
}

/** A table of mounts that no other process has: what is mounted there is gone with it. */
export type MountSpace = {
  path: string
  /** Words that a program is started behind, to be in there. */
  behind: string[]
  /** A text for a shell, run in there as root. */
  sh(text: string): string
  /** One who looks, as a user without rights. */
  looker(uid: number, sandbox: string): Looker
  stop(): void
}

export type Looker = { look(text: string): Promise<Looked>; heard(): Promise<Looked>; stop(): void }

/** Needs root. `around`: the process whose mounts they are; without it a new one holds them. */
export function mountSpace(around?: number): MountSpace {
  const place = temporaryDirectory()
  const holder = around === undefined ? spawn('unshare', ['--mount', '--propagation', 'private', 'cat']) : null
  const pid = String(around ?? holder?.pid)
  const behind = ['nsenter', '--target', pid, '--mount', '--']
  const lookers: Looker[] = []
  return {
    path: place.path,
    behind,
    sh: (text) =>
      execFileSync('nsenter', [...behind.slice(1), '/bin/bash', '-ec', `cd '${place.path}'\n${text}`], {
        encoding: 'utf8',
      }),
    looker(uid, sandbox) {
      const looker = lookerBehind(behind, uid, sandbox)
      lookers.push(looker)
      return looker
    },
    stop() {
      for (const each of lookers) each.stop()
      holder?.kill('SIGKILL')
      place.remove()
    },
  }
}

function lookerBehind([nsenter = '', ...words]: string[], uid: number, sandbox: string): Looker {
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', program, String(uid), sandbox]
  const child: ChildProcess = spawn(nsenter, [...words, ...node], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const next = async (): Promise<Looked> => {
    const { value, done } = await lines.next()
    if (done) throw new Error('the one who looks has ended')
    return JSON.parse(value)
  }
  return {
    async look(text) {
      child.stdin?.write(`${JSON.stringify(text)}\n`)
      for (;;) {
        const answer = await next()
        if (answer.said === undefined) return answer
      }
    },
    heard: next,
    stop: () => void child.kill('SIGKILL'),
  }
}
