import { z } from 'zod'
import { defineSpec, onlyLooks, present, same, word } from './spec.ts'

export const procListArgs = z.strictObject({
  /** Part of the name or of the command line. */
  name: z.string().min(1).max(200).optional(),
  /** Who listens or is connected there. An agent older than this argument refuses it. */
  port: z.number().int().min(1).max(65_535).optional(),
  limit: z.number().int().min(1).max(1_000).default(50),
})

export const procKillArgs = z.strictObject({
  pid: z.number().int().min(1).max(4_194_304),
  /** As `proc.list` answered it: another process that has the pid by now is left alone. */
  start_time: z.string().regex(/^\d{1,20}$/, 'is not a start_time of proc_list'),
  signal: z.enum(['TERM', 'KILL', 'HUP', 'INT']).default('TERM'),
})

export const procList = defineSpec({
  name: 'proc_list',
  capability: 'proc.list',
  about: 'List processes on a device, by text or by port: pid, start_time, user, name, command line, memory, CPU now.',
  args: procListArgs,
  input: () => procListArgs.extend({ name: word.optional(), limit: z.number().int().min(1).max(1_000).optional() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  inside: true,
  toArgs: present,
  toOutput: same,
  summary: () => 'List processes',
})

const processes = z.looseObject({
  processes: z.array(z.looseObject({ pid: z.number(), start_time: z.coerce.string() })),
  total: z.number().optional(),
})

type Kill = { pid: number; start_time: string; signal: 'TERM' | 'KILL' | 'HUP' | 'INT' }

export const procKill = defineSpec({
  name: 'proc_kill',
  isRare: true,
  capability: 'proc.kill',
  about: 'Signal one process on a device, named by pid and the start_time that proc_list gave.',
  args: procKillArgs,
  // The device refuses process 1 as well, and says why; a model need not ask.
  input: () => procKillArgs.extend({ pid: z.number().int().min(2).max(4_194_304) }),
  effect: 'write',
  risk: 'high',
  reversible: false,
  inside: true,
  privileged: true,
  asked: true,
  rehearses: true,
  toArgs: present,
  toOutput: same,
  summary: ({ pid, start_time, signal }: Kill) => `Send ${signal} to process ${pid} (started at ${start_time})`,
  proof: {
    promised: 'the process is gone',
    otherwise:
      'the signal asks for something that no list of processes shows; look at what the process does yourself afterwards',
  },
  promise({ pid, start_time, signal }) {
    if (signal === 'HUP') return null
    return {
      look: () => ({ capability: 'proc.list', args: { limit: 1_000 } }),
      holds({ result }) {
        const found = processes.safeParse(result)
        if (!found.success) return null
        const { processes: shown, total } = found.data
        if (shown.some((each) => each.pid === pid && each.start_time === start_time)) {
          return { holds: false, observed: `process ${pid} still runs` }
        }
        // It may be among those that were left out.
        return total !== undefined && total > shown.length ? null : { holds: true, observed: 'the process is gone' }
      },
    }
  },
})

export const procSpecs = [procList, procKill]
