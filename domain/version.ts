import manifest from '../package.json' with { type: 'json' }

/** The version of the package, which the command, the documents, the metrics and the image share. */
export const version: string = manifest.version
