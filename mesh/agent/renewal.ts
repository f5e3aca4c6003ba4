import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { filesOf, type Places } from './enrolment.ts'

const program = fileURLToPath(new URL('./renew-process.ts', import.meta.url))

/** A manifest is renewed in the second half of its days, and the control plane's keys change: a few hours late is early enough. */
const everyMs = 6 * 3_600_000
const afterFailureMs = 10 * 60_000

/**
 * Fetches the device's manifest now and every few hours, and tells its id. In a process of its own: what speaks TLS outwards would stay
 * in the memory of an agent that is idle nearly always. A device that was not enrolled by a token keeps the manifest that it has.
 */
export function keepRenewed(
  places: Places,
  on: { fetched(manifest: string): Promise<void>; failed(why: string): void },
): { stop(): void } {
  let timer: NodeJS.Timeout | undefined
  let child: ReturnType<typeof execFile> | undefined
  // Devices that started together, after a power cut say, do not come back together.
  const later = (ms: number) => {
    timer = setTimeout(attempt, ms * (0.75 + Math.random() / 2)).unref()
  }

  function attempt(): void {
    child = execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', program, JSON.stringify(places)],
      { timeout: 60_000, env: process.env },
      (error, stdout, stderr) => {
        if (error) on.failed(stderr.trim() || error.message)
        else void on.fetched(stdout.trim()).catch((why) => on.failed(String(why)))
        later(error && error.code !== 2 ? afterFailureMs : everyMs)
      },
    )
  }

  if (existsSync(filesOf(places).refresh)) attempt()
  return {
    stop() {
      clearTimeout(timer)
      child?.kill()
    },
  }
}
