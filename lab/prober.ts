import { existsSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { writeWhole } from './children.ts'
import {
  fingerprintOf,
  type LabCondition,
  neverEnded,
  type WebhookAlert,
  type WebhookBody,
  webhookBody,
  withoutEnds,
} from './conditions.ts'

/** The number of checks after which the sender that never reports ends repeats a fault. */
const repeatAfterLooks = 20
/** The number of equal checks in a row before an alert fires or resolves. */
const looks = 2

const labels = z.record(z.string(), z.string())
const webhookAlert: z.ZodType<WebhookAlert> = z.object({
  status: z.enum(['firing', 'resolved']),
  labels,
  annotations: labels,
  startsAt: z.string(),
  endsAt: z.string(),
  generatorURL: z.string(),
  fingerprint: z.string(),
})

/** The state that the prober keeps over a restart: firing alerts, and undelivered notifications. */
const memory = z.object({
  firing: z.record(z.string(), webhookAlert),
  unsent: z.array(z.object({ alertname: z.string(), alerts: z.array(webhookAlert) })),
})
export type ProberMemory = z.infer<typeof memory> & {
  /** The number of checks in a row whose result differed from the last report, by fingerprint. */
  disagreeing: Record<string, number>
  /**
   * The number of checks in a row that still found the fault, by fingerprint of an alert whose
   * sender never reports an end.
   */
  lasting?: Record<string, number>
}

type Prober = { stop(): Promise<void> }

type Post = (body: WebhookBody) => Promise<'sent' | 'retry' | 'refused'>

/**
 * Checks the conditions at intervals and posts changes. An undelivered notification stays first in
 * the queue, even over a restart, so that each alert fires before it resolves.
 */
export function startProber(
  file: string,
  intervalMs: number,
  conditions: () => Promise<LabCondition[]>,
  post: Post,
  onError: (error: unknown) => void,
): Prober {
  let remembered = readMemory(file)
  let stopped = false
  let timer: NodeJS.Timeout
  let round: Promise<void> = Promise.resolve()
  let kept = ''

  function keep({ firing, unsent }: ProberMemory): void {
    const text = JSON.stringify({ firing, unsent })
    if (text !== kept) writeWhole(file, text)
    kept = text
  }

  async function look(): Promise<void> {
    remembered = afterLook(remembered, await conditions(), new Date())
    keep(remembered)
    while (remembered.unsent.length > 0 && !stopped) {
      const { alertname, alerts } = remembered.unsent[0]!
      const outcome = await post(webhookBody(alertname, alerts))
      if (outcome === 'retry') return
      if (outcome === 'refused') onError(new Error(`an alert ${alertname} was refused, and the lab drops it`))
      remembered = { ...remembered, unsent: remembered.unsent.slice(1) }
      keep(remembered)
    }
  }

  function next(): void {
    timer = setTimeout(() => {
      round = look()
        .catch(onError)
        .then(() => (stopped ? undefined : next()))
    }, intervalMs)
  }
  next()

  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await round
    },
  }
}

/**
 * Computes the prober's state after a check: alerts begin or end, and are queued. Alerts with one
 * name and one sender are sent together. The sender without ends repeats an alert once, and never
 * reports its end.
 */
export function afterLook(before: ProberMemory, conditions: LabCondition[], now: Date): ProberMemory {
  const at = now.toISOString()
  const bad = new Map(conditions.map((each) => [fingerprintOf(each.labels), each]))
  const firing = { ...before.firing }
  const disagreeing: Record<string, number> = {}
  const lasting: Record<string, number> = {}
  const changed: WebhookAlert[] = []
  for (const fingerprint of new Set([...bad.keys(), ...Object.keys(firing)])) {
    const condition = bad.get(fingerprint)
    const said = firing[fingerprint]
    if (condition && said && !hasEnds(said)) {
      lasting[fingerprint] = (before.lasting?.[fingerprint] ?? 0) + 1
      if (lasting[fingerprint] === repeatAfterLooks) changed.push(said)
    }
    if (Boolean(condition) === Boolean(said)) continue
    const count = (before.disagreeing[fingerprint] ?? 0) + 1
    if (count < looks) {
      disagreeing[fingerprint] = count
    } else if (condition) {
      const generatorURL = `http://lab.internal/alerts/${fingerprint}`
      firing[fingerprint] = {
        status: 'firing',
        ...condition,
        startsAt: at,
        endsAt: neverEnded,
        generatorURL,
        fingerprint,
      }
      changed.push(firing[fingerprint])
    } else if (said) {
      if (hasEnds(said)) changed.push({ ...said, status: 'resolved', endsAt: at })
      delete firing[fingerprint]
    }
  }
  const groups = Map.groupBy(changed, ({ labels }) => `${labels.alertname} ${labels.monitor ?? ''}`)
  const bodies = [...groups.values()].map((alerts) => ({ alertname: alerts[0]!.labels.alertname!, alerts }))
  return { firing, disagreeing, lasting, unsent: [...before.unsent, ...bodies] }
}

function hasEnds({ labels }: WebhookAlert): boolean {
  return labels.monitor !== withoutEnds
}

/** Posts to a receiver of Alertmanager's webhooks. Returns `retry` only if the failure may pass. */
export function postTo(url: string, token: string): Post {
  return async (body) => {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(5000),
      })
      await response.arrayBuffer()
      if (response.ok) return 'sent'
      return response.status >= 500 || response.status === 429 ? 'retry' : 'refused'
    } catch {
      return 'retry'
    }
  }
}

function readMemory(file: string): ProberMemory {
  if (!existsSync(file)) return { firing: {}, unsent: [], disagreeing: {} }
  return { ...memory.parse(JSON.parse(readFileSync(file, 'utf8'))), disagreeing: {} }
}
