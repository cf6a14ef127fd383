#!/usr/bin/env node
'use strict';

var launch = require('./launch.cjs');
launch(launch.SERVICE, process.argv.slice(2));
