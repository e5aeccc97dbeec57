"""Ports that are programs of their own: the kit asks, and the port answers, one line of JSON each.

``protocol`` says which requests and answers there are.
"""
