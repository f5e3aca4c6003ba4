/** A write under its key. Written before it is sent, for Proxmox VE knows no idempotency keys. */
export type JournalEntry = {
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

export type JournalRow = JournalEntry & {
  /** The UPID of its task; null while it is not known. */
  task: string | null
  ageSeconds: number
  ending: { status: 'done' | 'failed'; detail: string } | null
}

/** Survives the process that wrote it. */
export type Journal = {
  get(key: string): Promise<JournalRow | null>
  /** True for exactly one caller: that one, and nobody else, may send it. */
  begin(entry: JournalEntry): Promise<boolean>
  noteTask(key: string, task: string): Promise<void>
  /** The first ending stays. */
  end(key: string, ending: { status: 'done' | 'failed'; detail: string }): Promise<void>
}
