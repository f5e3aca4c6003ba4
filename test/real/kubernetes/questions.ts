import type { ClusterFault } from '../../../lab/kubernetes/faults.ts'

/**
 * Sixty questions that a person asks about the faults of the lab's cluster. An answer holds where
 * what the API itself showed when the fault was broken in (`see` of `lab/kubernetes`) stands in it,
 * word for word: names of objects, times as the API writes them, revisions.
 */
export type ClusterQuestion = {
  fault: ClusterFault
  asks: 'what' | 'since' | 'why' | 'change' | 'more'
  question: string
  /** Names of the facts that must stand in the answer. */
  holds: string[]
}

const ask = (
  fault: ClusterFault,
  asks: ClusterQuestion['asks'],
  question: string,
  ...holds: string[]
): ClusterQuestion => ({ fault, asks, question, holds })

export const clusterQuestions: ClusterQuestion[] = [
  ask('k8s_crash_loop', 'what', 'Which pod of cart is it, and of which replica set?', 'object', 'pod', 'set'),
  ask('k8s_crash_loop', 'since', 'Since when is it not ready?', 'pod', 'since'),
  ask('k8s_crash_loop', 'why', 'What did the container say before it ended?', 'why'),
  ask('k8s_crash_loop', 'change', 'Which change brought it, and when?', 'set', 'change', 'changedAt'),
  ask('k8s_crash_loop', 'more', 'Which settings did the revision before it use?', 'before', 'change'),

  ask('k8s_image_pull', 'what', 'Which pod of catalog waits for what?', 'pod', 'change'),
  ask('k8s_image_pull', 'since', 'Since when is it not ready?', 'pod', 'since'),
  ask('k8s_image_pull', 'why', 'Why does its container not start?', 'why', 'change'),
  ask('k8s_image_pull', 'change', 'Which rollout named this image, and when?', 'set', 'change', 'changedAt'),
  ask('k8s_image_pull', 'more', 'Which image ran before?', 'before'),

  ask('k8s_out_of_memory', 'what', 'Which pod of search is restarted?', 'object', 'pod'),
  ask('k8s_out_of_memory', 'since', 'Since when is it not ready?', 'pod', 'since'),
  ask('k8s_out_of_memory', 'why', 'How did the container end?', 'why', 'exit'),
  ask('k8s_out_of_memory', 'change', 'Which change took its memory, and when?', 'set', 'change', 'changedAt'),
  ask('k8s_out_of_memory', 'more', 'What was its limit before, and what is it now?', 'before', 'change'),

  ask('k8s_probe_fails', 'what', 'Which pod of checkout is not ready?', 'object', 'pod'),
  ask('k8s_probe_fails', 'since', 'Since when is it not ready?', 'pod', 'since'),
  ask('k8s_probe_fails', 'why', 'What does its probe answer?', 'why'),
  ask('k8s_probe_fails', 'change', 'Which revision changed the probe, and when?', 'set', 'change', 'changedAt'),
  ask('k8s_probe_fails', 'more', 'Which path did the probe ask before?', 'before', 'change'),

  ask('k8s_no_room', 'what', 'Which pod of recommender is not placed?', 'object', 'pod'),
  ask('k8s_no_room', 'since', 'Since when does it wait for a node?', 'pod', 'since'),
  ask('k8s_no_room', 'why', 'Why does no node take it?', 'why'),
  ask('k8s_no_room', 'change', 'Which revision asks for so much, and when did it begin?', 'set', 'change', 'changedAt'),

  ask('k8s_volume_unbound', 'what', 'Which claim of ledger is not bound, and which pod waits for it?', 'claim', 'pod'),
  ask('k8s_volume_unbound', 'since', 'Since when is the claim pending?', 'claim', 'since'),
  ask('k8s_volume_unbound', 'why', 'Why is it not bound?', 'why'),
  ask('k8s_volume_unbound', 'change', 'Which revision uses this claim, and when?', 'set', 'change', 'changedAt'),
  ask('k8s_volume_unbound', 'more', 'Which claim did the revision before it use?', 'before', 'change'),

  ask('k8s_node_not_ready', 'what', 'Which node is not ready, and what is its condition called?', 'object', 'reason'),
  ask('k8s_node_not_ready', 'since', 'Since when is it not ready?', 'object', 'since'),
  ask('k8s_node_not_ready', 'why', 'What does its condition say?', 'why'),
  ask('k8s_node_not_ready', 'change', 'When did it give its last sign of life?', 'object', 'heartbeat'),

  ask('k8s_quota', 'what', 'Which workload lacks pods, and what stops them?', 'object', 'why'),
  ask('k8s_quota', 'since', 'Since when do its pods fail to be made?', 'object', 'since'),
  ask('k8s_quota', 'why', 'Which limit is reached?', 'why', 'limit'),
  ask('k8s_quota', 'change', 'Who asked for more pods, and when?', 'manager', 'changedAt'),

  ask('k8s_wrong_selector', 'what', 'Which service has no endpoint?', 'object', 'why'),
  ask('k8s_wrong_selector', 'since', 'Since when does it select what it selects now?', 'object', 'since'),
  ask('k8s_wrong_selector', 'why', 'Which label does it select, and which do the pods have?', 'why', 'wanted'),
  ask('k8s_wrong_selector', 'change', 'Who changed the service, and when?', 'manager', 'changedAt'),

  ask('k8s_webhook_expired', 'what', 'Which workload gets no pods, and which webhook stops them?', 'object', 'webhook'),
  ask('k8s_webhook_expired', 'since', 'Since when is no pod made?', 'object', 'since'),
  ask('k8s_webhook_expired', 'why', 'Why does the webhook fail?', 'webhook', 'why'),
  ask('k8s_webhook_expired', 'change', 'Which rollout needed new pods, and when?', 'set', 'changedAt'),
  ask('k8s_webhook_expired', 'more', 'When did the certificate end?', 'certificateEnd'),

  ask('k8s_job_endless', 'what', 'Which job does not end, and in which pod?', 'object', 'pod'),
  ask('k8s_job_endless', 'since', 'Since when does it run?', 'object', 'since'),
  ask('k8s_job_endless', 'why', 'What does it wait for?', 'why'),
  ask('k8s_job_endless', 'change', 'Who made it, and when?', 'manager', 'changedAt'),
  ask('k8s_job_endless', 'more', 'Which bound of its time is missing?', 'missing'),

  ask(
    'k8s_disk_pressure',
    'what',
    'Which node is under pressure of what, and which pod was evicted?',
    'node',
    'condition',
    'pod',
  ),
  ask('k8s_disk_pressure', 'since', 'Since when is the node under pressure?', 'node', 'since'),
  ask('k8s_disk_pressure', 'why', 'Why was the pod evicted?', 'why'),
  ask(
    'k8s_disk_pressure',
    'change',
    'Which revision of what began to fill it, and when?',
    'object',
    'set',
    'changedAt',
  ),
  ask('k8s_disk_pressure', 'more', 'Which settings did that revision bring?', 'change', 'before'),

  ask('k8s_red_herring', 'what', 'Which pod of pricing is not ready?', 'object', 'pod'),
  ask('k8s_red_herring', 'since', 'Since when is it not ready?', 'pod', 'since'),
  ask('k8s_red_herring', 'why', 'What does its log say?', 'why'),
  ask('k8s_red_herring', 'change', 'Which rollout changed pricing, and when?', 'set', 'change', 'changedAt'),
]
