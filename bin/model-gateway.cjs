#!/usr/bin/env node
'use strict';

require('./launch.cjs')('src/main.ts', process.argv.slice(2));
