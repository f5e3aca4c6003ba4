import { z } from 'zod'

/**
 * The state of a cluster, node or workload for its page, read from the source of the cluster for
 * this response. Contains no value of an environment variable, an argument or a Secret.
 */

const fact = z.object({ name: z.string(), text: z.string(), isIll: z.boolean() })
export type ClusterFact = z.infer<typeof fact>

const condition = z.object({
  /** The object that has this condition: `Deployment shop/web`. */
  of: z.string(),
  type: z.string(),
  is: z.enum(['True', 'False', 'Unknown']),
  isIll: z.boolean(),
  since: z.string().nullable(),
  reason: z.string(),
  message: z.string(),
})
export type ShownCondition = z.infer<typeof condition>

const podGroup = z.object({
  state: z.string(),
  isWell: z.boolean(),
  count: z.number(),
  /** The first few pods of the group. */
  pods: z.array(z.object({ name: z.string(), node: z.string(), restarts: z.number() })),
})
export type PodGroup = z.infer<typeof podGroup>

const end = z.object({
  /** True if this end is from before the container's last restart. */
  isBefore: z.boolean(),
  reason: z.string(),
  exitCode: z.number(),
  at: z.string().nullable(),
  ranFor: z.string(),
  message: z.string(),
})

const container = z.object({
  name: z.string(),
  image: z.string(),
  is: z.string(),
  isWell: z.boolean(),
  message: z.string(),
  restarts: z.number(),
  ends: z.array(end),
  /** Requests, limits and probes of the container, one sentence each. */
  rest: z.array(z.string()),
})
export type PodContainer = z.infer<typeof container>

const rollout = z.object({
  revision: z.number(),
  at: z.string(),
  isTakenUpAgain: z.boolean(),
  set: z.string().nullable(),
  ready: z.string().nullable(),
  /** Null if there is no earlier rollout to compare with; `first` then explains why. */
  changed: z.array(z.string()).nullable(),
  first: z.string(),
})
export type ShownRollout = z.infer<typeof rollout>

const event = z.object({
  reason: z.string(),
  about: z.string(),
  objects: z.number(),
  count: z.number(),
  first: z.string(),
  last: z.string(),
  isWarning: z.boolean(),
  message: z.string(),
})
export type ShownEvent = z.infer<typeof event>

const unwell = z.object({
  kind: z.enum(['node', 'workload', 'pod']),
  text: z.string(),
  /** The resource that this object is, or belongs to: `workload:prod:shop:deployment:web`. */
  resource: z.string().nullable(),
})
export type Unwell = z.infer<typeof unwell>

export const clusterNow = z.object({
  source: z.string(),
  kind: z.enum(['cluster', 'node', 'workload']),
  readAt: z.string(),
  /**
   * The time at which the API server last reported a change of the object, or that the object had
   * not changed.
   */
  heardAt: z.string().nullable(),
  facts: z.array(fact),
  conditions: z.array(condition),
  pods: z.array(podGroup),
  /** The pod in the worst state, and how its containers ended. */
  worst: z
    .object({ name: z.string(), state: z.string(), containers: z.array(container), lastLines: z.array(z.string()) })
    .nullable(),
  rollouts: z.array(rollout),
  /** Changes of the object that caused no rollout. */
  changes: z.array(z.object({ text: z.string(), at: z.string().nullable() })),
  unwell: z.array(unwell),
  /** How many unhealthy objects are not listed. */
  unwellMore: z.number(),
  events: z.array(event),
  eventsMore: z.number(),
  /** Parts of the state that could not be read, with the reason. */
  partial: z.array(z.string()),
})
export type ClusterNow = z.infer<typeof clusterNow>

export const podLog = z.object({
  pod: z.string(),
  container: z.string(),
  containers: z.array(z.string()),
  isPrevious: z.boolean(),
  lines: z.array(z.object({ at: z.string(), text: z.string() })),
  /** Whether the pod's log has more lines than are listed here. */
  isCut: z.boolean(),
})
export type PodLog = z.infer<typeof podLog>

/**
 * The pod's log to read. Null stands for the worst pod, or for the worst container of a pod.
 * `previous`: the log of the container before its restart.
 */
export type PodLogQuestion = { pod: string | null; container: string | null; previous: boolean }
