import type { HttpStep, JobOutcome } from '../../domain/job.ts'
import { exchange, type JobCredentials, JobSystemError, keepEnd, type RemoteJobs } from './exchange.ts'

const answerPlace = /\{answer\.([\w-]+(?:\.[\w-]+)*)\}/g

const plainValue = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/**
 * Runs a job at any HTTP service with one request. Optionally, an address reports the end of the
 * job later; this address is used as the job's number.
 */
export function createHttpJobs(
  step: HttpStep,
  { headers, hide, ca }: Omit<JobCredentials, 'token'> & { headers: Record<string, string> },
): RemoteJobs {
  const { poll } = step
  const who = URL.parse(step.url)?.host ?? 'the service'
  return {
    everyMs: (poll?.everySeconds ?? 2) * 1000,
    async launch({ key }) {
      const answer = await exchange({
        method: step.method,
        url: step.url,
        headers: { ...headers, 'idempotency-key': key },
        body: step.body,
        ca,
        hide,
        who,
        accept: poll ? 'json' : 'text',
      })
      return poll
        ? { ref: pollUrl(poll.url, answer, who) }
        : { outcome: outcomeOf(true, answer, `${who} answered that the job is done`) }
    },
    async look(ref) {
      if (!poll) return null
      const answer = await exchange({ method: 'GET', url: ref, headers, ca, hide, who })
      const state = String(valueAt(answer, poll.state) ?? '')
      if (poll.done.includes(state)) return outcomeOf(true, answer, `${who} says ${state}`)
      return poll.failed.includes(state) ? outcomeOf(false, answer, `${who} says ${state}`) : null
    },
    cancel: async () => {},
  }
}

function outcomeOf(isOk: boolean, answer: unknown, detail: string): JobOutcome {
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer, null, 2)
  return { isOk, exitCode: isOk ? 0 : 1, ...keepEnd(text), detail: detail.slice(0, 200) }
}

/**
 * Finds the address that reports the job's state. The service has already begun the job, so the
 * job's end is unknown if its response names no such address.
 */
function pollUrl(url: string, answer: unknown, who: string): string {
  return url.replace(answerPlace, (_, path: string) => {
    const value = String(valueAt(answer, path) ?? '')
    if (plainValue.test(value)) return value
    throw new JobSystemError(`the response of ${who} has no plain ${path}, which is needed to query the result`, true)
  })
}

function valueAt(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (at, key) =>
        at !== null && typeof at === 'object' && Object.hasOwn(at, key) ? (at as Record<string, unknown>)[key] : null,
      value,
    )
}
