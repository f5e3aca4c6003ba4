import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, temporaryDirectory } from '../support/directory.ts'

const program = '/lib/systemd/systemd'
const journal = '/run/log/journal'

/** Why this machine can run no manager; null when it can. */
export function whyNoSystemd(): string | null {
  if (!existsSync(program)) return 'no systemd: apt-get install systemd'
  return process.getuid?.() === 0 ? null : 'a manager of systemd takes root here'
}

/**
 * The machine need not have been started by systemd: the manager believes that it was, in its own view of /run. It and its services get
 * control groups of their own, which end with it. A real journald listens there; it knows a unit by the name of its control group, so the
 * groups begin with a slice, and keeps its journal where journalctl of the whole machine reads.
 */
const begin = `set -e
mkdir -p /run/systemd; mount -t tmpfs none /run/systemd; mkdir -p /run/systemd/system /run/systemd/journal
/lib/systemd/systemd-journald >/dev/null 2>&1 & echo $! > "$1/journald.pid"
for n in $(seq 50); do [ -S /run/systemd/journal/stdout ] && break; sleep 0.1; done
for at in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  [ -w $at/cgroup.procs ] || continue
  mkdir -p $at/$2; echo $$ > $at/$2/cgroup.procs
done
exec env -i PATH="$PATH" HOME="$1" XDG_RUNTIME_DIR="$1/run" XDG_CONFIG_HOME="$1/config" ${program} --user --unit=basic.target --log-target=console`

export type RealSystemd = {
  /** Where its manager listens: XDG_RUNTIME_DIR. */
  runtime: string
  /** Writes a unit and has the manager read it. */
  define(unit: string, text: string): void
  systemctl(...words: string[]): string
  stop(): Promise<void>
}

/** A real manager of systemd, as a user has one. Call `whyNoSystemd` first. */
export async function startSystemd(): Promise<RealSystemd> {
  const directory = temporaryDirectory()
  const group = `nightshift-${process.pid}.slice`
  const hadJournal = existsSync(journal)
  const units = join(directory.path, 'config/systemd/user')
  const runtime = join(directory.path, 'run')
  mkdirSync(units, { recursive: true })
  mkdirSync(runtime, { mode: 0o700 })
  const child = spawn('unshare', ['--mount', 'sh', '-c', begin, 'sh', directory.path, group], { stdio: 'ignore' })
  const systemctl = (...words: string[]) =>
    execFileSync('systemctl', ['--user', ...words], {
      env: { PATH: process.env.PATH ?? '', XDG_RUNTIME_DIR: runtime, LC_ALL: 'C' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  await eventually('the manager of systemd', () => {
    try {
      return systemctl('is-active', 'basic.target').trim() === 'active'
    } catch {
      return false
    }
  })
  return {
    runtime,
    systemctl,
    define(unit, text) {
      writeFileSync(join(units, unit), text)
      systemctl('daemon-reload')
    },
    async stop() {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      systemctl('exit')
      await gone
      process.kill(Number(readFileSync(join(directory.path, 'journald.pid'), 'utf8')), 'SIGKILL')
      if (!hadJournal) rmSync(journal, { recursive: true, force: true })
      for (const at of ['/sys/fs/cgroup/systemd', '/sys/fs/cgroup/unified', '/sys/fs/cgroup'])
        if (existsSync(join(at, group))) removeGroups(join(at, group))
      directory.remove()
    },
  }
}

/** Control groups are directories whose files cannot be removed. */
function removeGroups(path: string): void {
  const below = execFileSync('find', [path, '-depth', '-type', 'd'], { encoding: 'utf8' }).trim().split('\n')
  for (const each of below) {
    try {
      rmdirSync(each)
    } catch {
      // The kernel lets go of it a moment later.
    }
  }
}
