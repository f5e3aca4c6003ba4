/** A write under its key, written down before it is sent: for a platform that knows no idempotency keys, as Proxmox VE. */
export type PlatformEffect = {
  key: string
  /** `await`: nothing is sent, the HA manager is bringing the guest there by itself. */
  action: 'start' | 'migrate' | 'await'
  vmId: string
  /** Where the guest was, and where its task runs. */
  node: string
  target: string
  /** UPIDs of the guest's tasks on that node before it was sent: whatever is not among them came after. */
  tasksBefore: string[]
}

export type PlatformEffectEnding = { status: 'done' | 'failed'; detail: string }

/** What is known of it now. */
export type PlatformEffectRow = PlatformEffect & {
  /** The UPID of its task; null while it is not known. */
  task: string | null
  ageSeconds: number
  ending: PlatformEffectEnding | null
}
