import { access, readFile } from 'node:fs/promises'
import { z } from 'zod'
import { stripText } from '../../../safety/strip.ts'
import type { DeviceCapability } from '../capability.ts'
import { shownCommand, userNames } from '../process-facts.ts'
import { pids, processOf, statusField } from '../processes.ts'
import { answered } from '../refused.ts'

const args = z.strictObject({
  /** Part of the name or of the command line. */
  name: z.string().min(1).max(200).optional(),
  limit: z.number().int().min(1).max(1_000).default(50),
})

/** Running processes, the ones that used the most CPU first: `{ processes, total }`. Command lines come without their secrets. */
export const procList: DeviceCapability<z.infer<typeof args>> = {
  capability: 'proc.list',
  args,
  lacks: lacksProcesses,
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
  run: ({ name, limit }, { signal }) =>
    answered(signal, async () => {
      const users = await userNames()
      const found = []
      for (const pid of await pids()) {
        signal.throwIfAborted()
        const one = await described(pid, users)
        if (one && (name === undefined || one.name.includes(name) || one.cmdline.includes(name))) found.push(one)
      }
      found.sort((a, b) => b.cpu_seconds - a.cpu_seconds || a.pid - b.pid)
      const truncated = found.length > limit
      return { ok: true, result: { processes: found.slice(0, limit), total: found.length }, truncated }
    }),
}

export async function lacksProcesses(): Promise<string | null> {
  try {
    await access('/proc/self/stat')
    return null
  } catch {
    return '/proc is not mounted'
  }
}

async function described(pid: number, users: ReadonlyMap<string, string>) {
  const process = await processOf(pid)
  if (!process) return null
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
    const uid = statusField(status, 'Uid')?.split(/\s/)[0] ?? ''
    const { kernel_thread, ...rest } = process
    return {
      ...rest,
      name: stripText(rest.name, { keepNewlines: false }),
      user: users.get(uid) ?? uid,
      kernel_thread,
      rss_bytes: Number(statusField(status, 'VmRSS')?.split(' ')[0] ?? 0) * 1024,
      cmdline: shownCommand(words),
    }
  } catch {
    // It ended between two looks.
    return null
  }
}
