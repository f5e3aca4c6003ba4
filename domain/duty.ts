/**
 * Duties that Nightshift has all night. A lost one stands on Health and in `doctor` with its
 * remedy; a vital one also stops the heartbeat, and every destination hears of it.
 * `docs/how-to/watch-from-outside.md` repeats this table.
 */

type Duty = {
  /** When it is lost. */
  lostWhen: string
  /** What helps where the part itself knows nothing better. */
  remedy: string
  /** Is the night lost with it? Without the others investigations are poorer and go on. */
  isVital: boolean
}

export const duties = {
  database: {
    lostWhen:
      'it does not answer, takes no writes, its disk is full, it has another clock, or its connections are used up',
    remedy: '"nightshift doctor" on the host of the API, and its log, say what it answered',
    isVital: true,
  },
  Temporal: {
    lostWhen: 'it is not reached: alerts are taken in, and wait',
    remedy: 'start it, or correct TEMPORAL_ADDRESS: "temporal operator cluster health"',
    isVital: true,
  },
  worker: {
    lostWhen: 'none asks for work',
    remedy: 'start one: "systemctl start nightshift-worker", "docker compose up -d worker" or "npm start"',
    isVital: true,
  },
  queue: {
    lostWhen: 'its Schedule is gone, paused, edited or does not tick, or what waits is not taken up for five minutes',
    remedy: 'a worker makes a missing Schedule again within a minute; the log of the worker says what it lacks',
    isVital: true,
  },
  platform: {
    lostWhen: 'one is configured and does not answer: nothing can be repaired by it',
    remedy: 'look at PLATFORM_URL or PROXMOX_URL and what is behind it: "nightshift resources list"',
    isVital: true,
  },
  model: {
    lostWhen: 'more requests failed than succeeded in the last hour, and the last one did: incidents go to people',
    remedy: '"nightshift model check" asks it again; LLM_SERVERS_FILE names others that stand in',
    isVital: true,
  },
  'large bodies': {
    lostWhen: 'alerts that came in a large body wait, and for two minutes no worker took any of them up',
    remedy: 'start a worker, or see its log: it says what it met',
    isVital: true,
  },
  messages: {
    lostWhen:
      'one reached nobody within an hour, by no other way, or they wait for three minutes (a page that was held: one) and no worker takes them',
    remedy:
      'send a test: "nightshift config test webhook.critical" or "nightshift destinations test NAME" (to.NAME), or look at the channel of the Slack app',
    isVital: true,
  },
  budget: {
    lostWhen: 'its cap is reached: nothing is investigated',
    remedy: 'raise agent.budget_day or agent.budget_month, or wait for its end',
    isVital: true,
  },
  alerts: {
    lostWhen: 'a body of a known sender was refused within a day',
    remedy: 'send it in another form: docs/reference/ingest.md says what is accepted',
    isVital: false,
  },
  retention: {
    lostWhen: 'for a day no round went through what is old to its end',
    remedy: 'see the log of the API: it says what it met; "nightshift retention preview" shows what waits',
    isVital: false,
  },
  questions: {
    lostWhen:
      'the list of whom to ask names somebody who decides nothing, or no card takes what a budget of wakes holds back',
    remedy: 'mend "nightshift config get approval.on_call", or what the person may: "nightshift operators list"',
    isVital: false,
  },
  restore: {
    lostWhen: 'a backup was restored within a day',
    remedy: 'go through what docs/how-to/backup.md lists for a person to do',
    isVital: false,
  },
  trust: {
    lostWhen: 'what an older version ran unasked goes on doing so, and no person has confirmed it',
    remedy:
      '"nightshift trust" has the record of each; "nightshift trust promote TYPE TOOL --to act --reason WHY" confirms one',
    isVital: false,
  },
  knowledge: {
    lostWhen: 'a runbook cannot be read',
    remedy: '"nightshift knowledge list" names each file and its remedy',
    isVital: false,
  },
  'site policy': {
    lostWhen:
      'the newest file cannot be taken, so that the last good one holds, one that widens waits for an admin, or its rules ask for silences that nobody could read',
    remedy: '"nightshift policy show" says what holds, what waits and which line is wrong',
    isVital: false,
  },
  devices: {
    lostWhen: 'one does not answer, or does not confine what it reads: each look there asks a person',
    remedy: '"nightshift mesh devices" names each with its reason; docs/how-to/troubleshooting.md has the remedies',
    isVital: false,
  },
} satisfies Record<string, Duty>

export type DutyName = keyof typeof duties

/** The duty of a part, which may be one of several: `budget of the day`. */
export function dutyOf(part: string): Duty | null {
  const [name = ''] = part.split(' of the ')
  return Object.hasOwn(duties, name) ? duties[name as DutyName] : null
}
