import { z } from 'zod'
import type { RundeckStep } from '../../domain/job.ts'
import {
  type Exchange,
  exchange,
  type JobCredentials,
  JobSystemError,
  output,
  outputOf,
  type RemoteJobs,
  read,
} from './exchange.ts'

const execution = z.object({ id: z.union([z.number(), z.string()]).transform(String), status: z.string() })

const rundeckEnded: Record<string, boolean> = {
  succeeded: true,
  failed: false,
  'failed-with-retry': false,
  aborted: false,
  timedout: false,
  missed: false,
}

/**
 * Runs the jobs of a Rundeck over its API. Rundeck has no check mode, so a check is another job, or
 * this job with another option.
 */
export function createRundeckJobs(step: RundeckStep, { token, hide, ca }: JobCredentials): RemoteJobs {
  const base = `${step.url.replace(/\/+$/, '')}/api/${step.apiVersion}`
  const ask = (method: 'GET' | 'POST', path: string, more: Partial<Exchange> = {}) =>
    exchange({
      method,
      url: `${base}${path}`,
      headers: { 'x-rundeck-auth-token': token },
      who: 'Rundeck',
      ca,
      hide,
      ...more,
    })

  return {
    everyMs: 2_000,
    async launch() {
      // Sends options by name, because an argument line would be split at its spaces.
      const answer = await ask('POST', `/job/${step.job}/run`, { body: { options: step.options } })
      const found = execution.safeParse(answer)
      if (!found.success)
        throw new JobSystemError('Rundeck started a job, but did not return the id of the execution', true)
      return { ref: found.data.id }
    },
    async look(ref) {
      const { status } = read(execution, await ask('GET', `/execution/${ref}`), 'Rundeck')
      const isOk = rundeckEnded[status]
      if (isOk === undefined) return null
      const printed = await outputOf(async () => {
        const { entries } = read(output, await ask('GET', `/execution/${ref}/output`), 'Rundeck')
        return entries.map(({ log }) => log).join('\n')
      })
      return { isOk, exitCode: isOk ? 0 : 1, ...printed, detail: `Rundeck execution ${ref} is ${status}` }
    },
    async cancel(ref) {
      await ask('GET', `/execution/${ref}/abort`, { accept: 'text' })
    },
  }
}
